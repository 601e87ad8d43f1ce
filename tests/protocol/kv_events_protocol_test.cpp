// SPDX-License-Identifier: Apache-2.0
//
// KV events of a running engine: whoever keeps a copy of the index from them knows what can be found.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

/// What can be found in which cache, by the events alone.
std::map<std::string, std::set<content_key>> replay(const std::vector<kv_event>& events) {
  std::map<std::string, std::set<content_key>> found;
  for (const auto& event : events) {
    auto& keys = found[event.medium];
    switch (event.what) {
      case kv_event::kind::stored: keys.insert(event.block_hashes.begin(), event.block_hashes.end()); break;
      case kv_event::kind::removed:
        for (const auto& key : event.block_hashes) EXPECT_EQ(keys.erase(key), 1U) << "removed, but not stored before";
        break;
      case kv_event::kind::cleared: keys.clear(); break;
    }
  }
  return found;
}

engine_options with_events(bool is_async) {
  auto options = sized(4, 2, 14);
  options.num_host_slots = 4;
  options.async_scheduling = is_async;
  options.adjust = [](scheduler_config& config) { config.records_kv_events = true; };
  return options;
}

struct kv_events_protocol : both_schedulings {};
SLUICE_IN_BOTH_SCHEDULINGS(kv_events_protocol);

// Guards: stored events say what was stored, with its tokens and its parent, per tier.
TEST_P(kv_events_protocol, tell_tokens_and_parents_per_tier) {
  test_engine engine(with_events(GetParam()));
  const auto prompt = make_prompt(16);
  engine.complete_request(prompt, 1);
  std::vector<kv_event> device, host;
  for (const auto& event : engine.events) (event.medium == "device" ? device : host).push_back(event);
  ASSERT_EQ(device.size(), 4U);
  EXPECT_FALSE(device[0].parent.has_value());
  EXPECT_EQ(device[1].parent, device[0].block_hashes.at(0));
  EXPECT_EQ(device[1].tokens, (std::vector<token_id>{5, 6, 7, 8}));
  ASSERT_EQ(host.size(), 2U);
  EXPECT_EQ(host[0].medium, "host");
  EXPECT_EQ(host[1].block_size, 4U);
  EXPECT_EQ(host[1].tokens, (std::vector<token_id>{9, 10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(host[1].block_hashes, (std::vector<content_key>{device[2].block_hashes[0], device[3].block_hashes[0]}));
  EXPECT_EQ(host[1].parent, device[1].block_hashes[0]);
}

// Guards: evictions, failed loads and resets are told, so that a copy of the index is as large as the index.
TEST_P(kv_events_protocol, a_copy_of_the_index_stays_right) {
  test_engine engine(with_events(GetParam()));
  for (token_id first = 1; first < 200; first += 30) engine.complete_request(make_prompt(24, first), 4);
  auto found = replay(engine.events);
  EXPECT_EQ(found["device"].size(), engine.snapshot().blocks.cached);
  EXPECT_EQ(found["host"].size(), engine.snapshot().slots.ready * 2);
  EXPECT_GT(engine.totals().device_evictions, 0U);
  EXPECT_GT(engine.totals().host_evictions, 0U);
  EXPECT_TRUE(engine.reset(false, false).success);
  EXPECT_TRUE(replay(engine.events)["device"].empty());
  const auto again = engine.submit(make_prompt(24, 181), 4);
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  engine.fail(engine.loads()[0], 1);
  engine.run_to_idle();
  engine.expect_reference(again);
  found = replay(engine.events);
  EXPECT_EQ(found["device"].size(), engine.snapshot().blocks.cached);
  EXPECT_EQ(found["host"].size(), engine.snapshot().slots.ready * 2);
  EXPECT_TRUE(engine.reset(false, true).success);
  found = replay(engine.events);
  EXPECT_TRUE(found["device"].empty() && found["host"].empty());
}

}  // namespace
}  // namespace sluice::testing
