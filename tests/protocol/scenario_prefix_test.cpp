// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of what a request finds on the device and in the host tier, and of what it then loads.
#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_prefix : both_schedulings {
  static engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_blocks) {
    auto options = testing::sized(block_size, blocks_per_chunk, num_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_prefix);

std::vector<token_id> first(std::size_t num_tokens, const std::vector<token_id>& tokens) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(num_tokens)};
}

// O001, F = 3. Guards: one chunk that nobody has costs one lookup.
TEST_P(scenario_prefix, o001_one_uncached_chunk_costs_one_lookup) {
  auto options = sized(4, 3, 100);
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  const auto prompt = make_prompt(12);
  engine.end_at(prompt, 0);
  const auto id = engine.complete_request(prompt, 10);
  EXPECT_EQ(tier.take_lookups(), chunk_keys(engine, prompt));
  EXPECT_TRUE(engine.traffic().loads_of(id).empty());
  engine.expect_reference(id);
}

// O002, F = 3. Guards: behind a device hit only the missing chunk is loaded.
TEST_P(scenario_prefix, o002_loads_only_the_chunk_behind_a_device_hit) {
  test_engine engine(sized(4, 3, 100));
  const auto prompt = make_prompt(36);
  engine.warm_host(first(24, prompt));            // chunks 0 and 1
  engine.complete_request(first(12, prompt), 1);  // chunk 0 on the device again
  const auto id = engine.submit(prompt, 1);
  engine.run();
  ASSERT_EQ(engine.loads(), engine.traffic().loads_of(id));
  ASSERT_EQ(engine.loads().size(), 1U);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{3, 4, 5}));
  EXPECT_EQ(engine.record(id).summary->usage.num_device_cached_tokens, 12U);
  EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 12U);
  engine.expect_reference(id);
}

// O003, F = 1. Guards: with full attention a hit behind a miss is worth nothing.
TEST_P(scenario_prefix, o003_a_hit_behind_a_miss_is_worthless) {
  auto options = sized(4, 1, 100);
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  tier.accept_only({1});
  engine.warm_host(make_prompt(8));
  const auto keys = tier.offers().at(0).keys;
  ASSERT_EQ(keys.size(), 2U);
  ASSERT_EQ(tier.verdict(keys[0]), lookup_verdict::miss);
  ASSERT_EQ(tier.verdict(keys[1]), lookup_verdict::hit);
  for (auto second : {lookup_verdict::hit, lookup_verdict::miss}) {
    ASSERT_EQ(tier.verdict(keys[1]), second);
    tier.refuse();
    tier.take_lookups();
    const auto id = engine.complete_request(make_prompt(8) + std::vector<token_id>{200}, 1);
    EXPECT_EQ(tier.take_lookups(), std::vector<chunk_key>{keys[0]});
    EXPECT_TRUE(engine.traffic().loads_of(id).empty());
    EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 0U);
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, 0U);
    engine.expect_reference(id);
    EXPECT_TRUE(engine.reset(false, true).success);
  }
}

// O004, F = 3. Guards: a chunk is loaded as F blocks, and the request runs only when the load has settled.
TEST_P(scenario_prefix, o004_loads_a_whole_chunk_into_a_cold_device) {
  test_engine engine(sized(4, 3, 100));
  const auto prompt = make_prompt(12);
  engine.end_at(prompt, 0);
  engine.warm_host(prompt);
  const auto id = engine.submit(prompt, 10);
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  EXPECT_EQ(engine.request(id)->phase, request_phase::loading);
  EXPECT_TRUE(engine.traffic().entries_of(id).empty());
  engine.complete(engine.loads()[0]);
  EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{0, 1, 2}));
  ASSERT_TRUE(engine.has_ended(id));
  EXPECT_EQ(engine.record(id).summary->reason, finish_reason::stop);
  EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 11U);  // the last one is computed again
  EXPECT_EQ(engine.model.num_verified_positions(), GetParam() ? 11U + 12 : 11U);  // the next step was on its way
  engine.expect_reference(id);
}

/// Two requests with these prompts, from nothing on their way to their end.
struct pair_run {
  std::vector<request_id> ids;
  std::uint64_t num_scheduled_tokens = 0;
};

pair_run run_pair(test_engine& engine, const std::vector<std::vector<token_id>>& prompts) {
  pair_run run;
  const auto before = engine.totals().scheduled_tokens;
  for (const auto& prompt : prompts) run.ids.push_back(engine.submit(prompt, 1));
  engine.run();
  for (auto id : run.ids) {
    EXPECT_EQ(engine.request(id)->phase, request_phase::loading);
    EXPECT_TRUE(engine.traffic().entries_of(id).empty());
  }
  engine.run_to_idle();
  run.num_scheduled_tokens = engine.totals().scheduled_tokens - before;
  return run;
}

// O136, block 16, F = 1. Guards: only tokens beyond device and host hits are scheduled, after the load; no block leaks.
TEST_P(scenario_prefix, o136_schedules_only_tokens_beyond_both_hits) {
  auto options = sized(16, 1, 100);
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  const std::vector<std::vector<token_id>> prompts{make_prompt(128, 1), make_prompt(128, 101)};
  for (const auto& prompt : prompts) {
    tier.accept_only({0, 1, 4, 5});  // tokens [0, 32) and [64, 96)
    engine.warm_host(prompt);
  }
  const auto at_first = engine.snapshot().blocks;
  const auto short_run = run_pair(engine, {first(64, prompts[0]), first(64, prompts[1])});
  EXPECT_EQ(short_run.num_scheduled_tokens, 2U * 32);
  const auto long_run = run_pair(engine, prompts);
  EXPECT_EQ(long_run.num_scheduled_tokens, 2U * (128 - 64 - 32));
  for (auto id : short_run.ids) {
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).tokens.size(), 32U);
    EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{0, 1}));
    engine.expect_reference(id);
  }
  for (auto id : long_run.ids) {
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).tokens.size(), 32U);
    EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{4, 5}));
    EXPECT_EQ(engine.record(id).summary->usage.num_device_cached_tokens, 64U);
    EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 32U);
    engine.expect_reference(id);
  }
  const auto at_last = engine.snapshot().blocks;
  EXPECT_EQ(at_last.free + at_last.cached, at_first.free + at_first.cached);
}

}  // namespace
}  // namespace sluice::testing
