// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of resetting tiers under requests that use them.
#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_reset : both_schedulings {
  static engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_blocks) {
    auto options = testing::sized(block_size, blocks_per_chunk, num_blocks);
    options.async_scheduling = GetParam();
    return options;
  }

  static reset_report reset_tiers(test_engine& engine) {
    engine.post(reset_prefix_cache{false, true, false, {}});
    EXPECT_TRUE(engine.system.run_until([&] { return engine.last_reset->has_value(); }));
    return engine.last_reset->value_or(reset_report{});
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_reset);

// O055, the host tier alone, F = 1. Guards: a tier's reset takes what an active request is storing from the tier and
// nothing from the request, which ends once, by itself; what others store afterwards stays.
TEST_P(scenario_reset, o055_a_tier_reset_under_the_store_of_an_active_request) {
  test_engine engine(sized(4, 1, 100));
  const auto id = engine.submit(make_prompt(8), 12);
  ASSERT_TRUE(engine.run_until_tokens(id, 10));
  EXPECT_EQ(engine.snapshot().slots.pending, 2U);
  EXPECT_TRUE(reset_tiers(engine).success);
  EXPECT_EQ(engine.snapshot().slots.pending, 0U);
  EXPECT_EQ(engine.snapshot().slots.draining, 2U);  // the copies go on
  EXPECT_EQ(engine.request(id)->phase, request_phase::running);
  EXPECT_EQ(engine.record(id).num_terminal_events, 0U);
  const auto other = engine.submit(make_prompt(8, 101), 1);
  engine.run_to_idle();
  EXPECT_EQ(engine.totals().stores_stale, 1U);
  EXPECT_EQ(engine.traffic().stored_ordinals(other), (ordinals{0, 1}));
  EXPECT_EQ(engine.snapshot().slots, (slot_counts{62, 0, 2, 0, 0}));
  for (auto ended : {id, other}) {
    EXPECT_EQ(engine.record(ended).num_terminal_events, 1U);
    engine.expect_reference(ended);
  }
}

// O056, F = 3. As DESIGN has it the load is not flushed: it runs to its physical end and settles as stale. Guards: a
// tier's reset under a load resets it once; the request computes everything and stores it from the beginning.
TEST_P(scenario_reset, o056_a_tier_reset_under_a_load) {
  test_engine engine(sized(4, 3, 100));
  engine.warm_host(make_prompt(12));
  const auto id = engine.submit(make_prompt(12), 2);
  engine.run();
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 1U);
  const auto report = reset_tiers(engine);
  EXPECT_TRUE(report.success);
  ASSERT_EQ(report.caches.size(), 1U);
  EXPECT_EQ(report.caches[0].num_dropped, 1U);
  engine.run();
  EXPECT_EQ(engine.loads(), loads);
  EXPECT_EQ(engine.request(id)->phase, request_phase::loading);
  EXPECT_EQ(engine.snapshot().slots.draining, 1U);
  EXPECT_EQ(engine.totals().resets_tiers_success, 1U);
  engine.complete(loads[0]);
  EXPECT_TRUE(engine.loads().empty());
  EXPECT_EQ(engine.totals().loads_stale, 1U);
  EXPECT_TRUE(engine.traffic().flushed().empty());
  EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, 0U);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{0, 1, 2}));
  EXPECT_EQ(engine.snapshot().slots.ready, 1U);
  engine.expect_reference(id);
}

// O058, blocks of 8 tokens, with one tier of 5 slots, hence without promotions; as DESIGN has it stores in flight are
// not drained first, but end as stale. Guards: a tier's reset leaves nothing to be found and every slot to be used, and
// no request loses its state by it.
TEST_P(scenario_reset, o058_a_tier_reset_keeps_active_requests) {
  auto options = sized(8, 1, 100);
  options.num_host_slots = 5;
  options.adjust = [](scheduler_config& config) { config.storing = store_policy::whole_request; };
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  const auto t = engine.submit(make_prompt(24), 20);
  const auto r = engine.submit(make_prompt(16, 101), 20);
  ASSERT_TRUE(engine.run_until_tokens(r, 18));
  const auto keys = chunk_keys(engine, make_prompt(24));
  ASSERT_EQ(keys.size(), 3U);
  ASSERT_TRUE(engine.device.complete_copies(engine.traffic().stores_of(t).at(0).value));
  ASSERT_TRUE(engine.system.run_until([&] { return engine.snapshot().slots.ready == 3; }));
  EXPECT_EQ(engine.snapshot().slots.pending, 2U);  // of R

  const auto report = reset_tiers(engine);
  EXPECT_TRUE(report.success);
  ASSERT_EQ(report.caches.size(), 1U);
  EXPECT_EQ(report.caches[0].num_dropped, 5U);
  for (const auto& key : keys) EXPECT_EQ(tier.verdict(key), lookup_verdict::miss);
  EXPECT_EQ(engine.snapshot().slots, (slot_counts{3, 0, 0, 2, 2}));
  for (auto id : {t, r}) EXPECT_EQ(engine.request(id)->phase, request_phase::running);
  engine.run_to_idle();
  EXPECT_EQ(engine.totals().stores_stale, 1U);
  EXPECT_EQ(engine.totals().resets_tiers_success, 1U);
  EXPECT_EQ(engine.snapshot().slots, (slot_counts{5, 0, 0, 0, 0}));
  for (auto id : {t, r}) {
    EXPECT_EQ(engine.record(id).summary->usage.num_preemptions, 0U);
    engine.expect_reference(id);
  }
}

}  // namespace
}  // namespace sluice::testing
