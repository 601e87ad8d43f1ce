// SPDX-License-Identifier: Apache-2.0
//
// KV events of a running engine: whoever keeps a copy of the index from them knows what can be found.
#include <algorithm>
#include <chrono>
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

/// What makes a transfer in flight an old one.
enum class outdated_by { reset, timeout };

struct kv_events_of_old_transfers : both_schedulings {
  static engine_options options() {
    auto options = with_events(GetParam());
    options.blocks_per_chunk = 1;
    options.num_device_blocks = 60;
    options.num_host_slots = 16;
    options.adjust = [](scheduler_config& config) {
      config.records_kv_events = true;
      config.transfer_timeout = timeout;
    };
    return options;
  }

  void outdate(outdated_by how) {
    if (how == outdated_by::timeout) {
      for (int i = 0; i < 20; ++i, engine.run()) engine.system.advance(timeout / 10);
      return;
    }
    engine.post(reset_prefix_cache{false, true, engine.loads().empty(), {}});  // else the device refuses
    engine.run();
    ASSERT_TRUE(engine.last_reset->has_value());
    EXPECT_TRUE((*engine.last_reset)->success);
    EXPECT_EQ(engine.events.back().what, kv_event::kind::cleared);
  }

  /// The host's events since the last call.
  std::vector<kv_event> host_events() {
    std::vector<kv_event> host;
    for (; num_seen < engine.events.size(); ++num_seen)
      if (engine.events[num_seen].medium == "host") host.push_back(engine.events[num_seen]);
    return host;
  }

  /// Both chunks of the prompt, with their tokens and their parents.
  void expect_described(const std::vector<kv_event>& told) {
    ASSERT_EQ(told.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(told[i].what, kv_event::kind::stored);
      EXPECT_EQ(told[i].block_size, 4U) << "a placeholder";
      EXPECT_EQ(told[i].tokens, make_prompt(4, static_cast<token_id>(1 + 4 * i)));
    }
    EXPECT_EQ(told[1].parent, told[0].block_hashes.at(0));
    EXPECT_EQ(replay(engine.events)["host"].size(), engine.snapshot().slots.ready);
  }

  static constexpr std::chrono::seconds timeout{100};
  test_engine engine{options()};
  std::size_t num_seen = 0;
};
SLUICE_IN_BOTH_SCHEDULINGS(kv_events_of_old_transfers);

// A store is in flight when the tier is reset, or the store is given up; its chunks are stored anew before its copies
// end. Guards: the end of the old store says nothing and takes nothing from what is known of the new one.
TEST_P(kv_events_of_old_transfers, an_old_store_does_not_speak_for_a_new_one) {
  for (auto how : {outdated_by::reset, outdated_by::timeout}) {
    SCOPED_TRACE(static_cast<int>(how));
    engine.submit(make_prompt(8), 1);
    engine.run();
    ASSERT_EQ(engine.stores().size(), 1U);
    const auto old_store = engine.stores()[0];
    outdate(how);
    const auto again = engine.submit(make_prompt(8), 1);
    engine.run();
    ASSERT_TRUE(engine.has_ended(again));
    ASSERT_EQ(engine.stores().size(), 2U);
    host_events();
    ASSERT_EQ(engine.stores()[0], old_store);
    engine.complete(old_store);
    EXPECT_TRUE(host_events().empty());
    EXPECT_EQ(engine.snapshot().slots.pending, 2U);
    engine.complete(engine.stores().at(0));
    expect_described(host_events());
    EXPECT_EQ(engine.totals().stores_stale, 1U);
    EXPECT_EQ(engine.totals().stores_timed_out, how == outdated_by::timeout ? 1U : 0U);
    EXPECT_TRUE(engine.reset(false, true).success);
  }
}

// A load is in flight when the tier is reset; what it reads is stored anew before it fails, or is given up. Guards: the
// end of the old load says nothing of the new chunks.
TEST_P(kv_events_of_old_transfers, an_old_load_does_not_remove_a_new_chunk) {
  for (auto ends_by : {outdated_by::reset, outdated_by::timeout}) {
    SCOPED_TRACE(static_cast<int>(ends_by));
    engine.warm_host(make_prompt(8));
    const auto id = engine.submit(make_prompt(8) + make_prompt(4, 101), 2);
    engine.run();
    ASSERT_EQ(engine.loads().size(), 1U);
    const auto load = engine.loads()[0];
    outdate(outdated_by::reset);
    host_events();
    const auto other = engine.submit(make_prompt(8), 1);
    engine.run();
    ASSERT_TRUE(engine.has_ended(other));
    ASSERT_EQ(engine.stores().size(), 1U);
    engine.complete(engine.stores()[0]);
    expect_described(host_events());
    if (ends_by == outdated_by::timeout) outdate(ends_by);
    engine.fail(load, 0);
    for (const auto& event : host_events()) EXPECT_EQ(event.what, kv_event::kind::stored) << "removed, or cleared";
    engine.run_to_idle();
    EXPECT_EQ(replay(engine.events)["host"].size(), engine.snapshot().slots.ready);
    engine.expect_reference(id);
    EXPECT_TRUE(engine.reset(false, true).success);
  }
}

}  // namespace
}  // namespace sluice::testing
