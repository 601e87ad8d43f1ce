// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of where a request's cached tokens came from: the device, or the one tier.
#include <algorithm>

#include <gtest/gtest.h>

#include <support/kv_groups.hpp>
#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_source : grouped_scenario {};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_source);

const std::vector<token_id> tail{201};

// O144 with one tier. Guards: tokens that several groups load, in chunks of different sizes, are counted once.
TEST_P(scenario_source, o144_overlapping_groups_count_a_token_once) {
  test_engine engine(grouped({{full, 0, 4}, {full, 0, 8}}));
  engine.warm_host(make_prompt(8));
  const auto id = engine.complete_request(make_prompt(8) + tail, 1);
  EXPECT_EQ(engine.traffic().loaded_ordinals(id, 0), (ordinals{0, 1}));
  EXPECT_EQ(engine.traffic().loaded_ordinals(id, 1), (ordinals{0}));
  const auto usage = engine.record(id).summary->usage;
  EXPECT_EQ(usage.num_host_cached_tokens, 8U);
  EXPECT_EQ(usage.num_device_cached_tokens, 0U);
  engine.expect_reference(id);
}

struct source_case {
  std::uint32_t factor;
  bool has_full;
  std::uint32_t num_on_device;  ///< tokens
};

/// Of a prompt of four chunks, in chunks of C tokens, of which the host has everything.
void expect_sources(engine_options options, const source_case& chosen) {
  SCOPED_TRACE(::testing::Message() << "F = " << chosen.factor << ", full " << chosen.has_full << ", on device "
                                    << chosen.num_on_device);
  const auto chunk_tokens = 4 * chosen.factor;
  options.blocks_per_chunk = chosen.factor;
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  const auto prompt = make_prompt(4 * chunk_tokens);
  engine.warm_host(prompt);
  if (chosen.num_on_device > 0) engine.complete_request(make_prompt(chosen.num_on_device), 1);
  const std::uint16_t of_window = chosen.has_full ? 1 : 0;
  const auto keys = chunk_keys(engine, prompt, of_window);
  tier.take_lookups();
  const auto id = engine.complete_request(prompt + tail, 1);

  const auto usage = engine.record(id).summary->usage;
  EXPECT_EQ(usage.num_device_cached_tokens, chosen.num_on_device);
  EXPECT_EQ(usage.num_host_cached_tokens, 4 * chunk_tokens - chosen.num_on_device);
  const auto first_loaded = 2 * chosen.factor;  // blocks
  ordinals of_two_chunks;
  for (auto block = first_loaded; block < 4 * chosen.factor; ++block) of_two_chunks.push_back(block);
  EXPECT_EQ(engine.traffic().loaded_ordinals(id, of_window), of_two_chunks);
  for (const auto& key : tier.take_lookups()) {
    if (key.group.value != of_window) continue;
    EXPECT_TRUE(key == keys.at(2) || key == keys.at(3)) << "an earlier chunk of the window";
  }
  if (chosen.has_full) {
    const auto loaded = engine.traffic().loaded_ordinals(id, 0);
    EXPECT_EQ(loaded.front(), chosen.num_on_device / 4);
    EXPECT_EQ(loaded.size(), 4 * chosen.factor - chosen.num_on_device / 4);
  }
  engine.expect_reference(id);
}

// O145 with one tier; what a window skips counts as the tier's, for nothing of it is computed. Guards: of a window
// group only the last two chunks are looked up and loaded, and cached tokens are counted once, less the device's.
TEST_P(scenario_source, o145_a_window_group_counts_where_it_was_loaded) {
  for (const std::uint32_t factor : {1U, 2U})
    for (const bool has_full : {false, true})
      for (const std::uint32_t num_on_device : {0U, 4U}) {
        std::vector<kv_group_spec> groups{{window, 8 * factor, 4}};
        if (has_full) groups.insert(groups.begin(), {full, 0, 4});
        expect_sources(grouped(std::move(groups)), {factor, has_full, num_on_device});
      }
}

}  // namespace
}  // namespace sluice::testing
