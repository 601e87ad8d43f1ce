// SPDX-License-Identifier: Apache-2.0
//
// Hazards of resetting the caches under steps and stores in flight, and of tiers that refuse.
#include <chrono>

#include <gtest/gtest.h>

#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using verdict = tier_reset_outcome::verdict;

struct hazard_reset_more : both_schedulings {
  static engine_options options() {
    auto options = sized(4, 1, 100);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_reset_more);

/// A device reset between A's last dispatch and its result. Then B with A's prompt.
void reset_under_the_last_step(engine_options options, bool preempts, bool aborts) {
  SCOPED_TRACE(std::string(preempts ? "preempts" : "") + (aborts ? " aborts" : ""));
  options.holds_compute = true;
  options.num_host_slots = 0;
  test_engine engine(std::move(options));
  const auto a = engine.submit(make_prompt(8), 2);
  for (engine.run(); engine.request(a)->num_tokens < 9; engine.run()) ASSERT_TRUE(engine.device.step("compute"));
  engine.device.run_all("compute");  // the last step has run, and the scheduler does not know
  if (aborts) engine.abort(a);
  engine.post_reset(preempts, false);
  engine.run_to_idle();
  ASSERT_TRUE(engine.last_reset->has_value());
  const bool is_dropped = (*engine.last_reset)->success;
  if (!aborts) engine.expect_reference(a);
  const auto b = engine.complete_request(make_prompt(8) + std::vector<token_id>{201}, 2);
  engine.expect_reference(b);
  EXPECT_EQ(engine.faults(), std::vector<std::string>{});
  EXPECT_TRUE(is_dropped || !preempts) << "a step in flight never refuses a reset";
}

// RESET-01. Guards: a reset that meets a request whose last result is on the way is refused, or preempts it, or, once
// it is aborted, succeeds; afterwards everybody's tokens are right.
TEST_P(hazard_reset_more, reset_01_under_a_last_step_whose_result_is_on_the_way) {
  for (const bool preempts : {false, true})
    for (const bool aborts : {false, true}) reset_under_the_last_step(options(), preempts, aborts);
}

struct tier_run {
  explicit tier_run(engine_options options) {
    auto owned = std::make_unique<scripted_tier>(options.num_host_slots);
    tier = owned.get();
    options.tier = std::move(owned);
    engine = std::make_unique<test_engine>(std::move(options));
  }
  scripted_tier* tier;
  std::unique_ptr<test_engine> engine;
};

// RESET-06 (1), and (2) of a tier that refuses. Guards: only an explicit success of the tier counts; `cannot` differs
// from `not now`, requests in flight are not disturbed, and a later reset succeeds.
TEST_P(hazard_reset_more, reset_06_a_tier_that_is_not_reset_is_no_success) {
  for (auto refusal : {verdict::unsupported, verdict::refused}) {
    tier_run run(options());
    auto& engine = *run.engine;
    engine.warm_host(make_prompt(8));
    const auto id = engine.submit(make_prompt(8, 101), 12);
    ASSERT_TRUE(engine.run_until_tokens(id, 11));
    run.tier->answer_resets(refusal);
    const auto report = engine.reset(true, true);
    EXPECT_FALSE(report.success);
    ASSERT_EQ(report.caches.size(), 2U);
    EXPECT_TRUE(report.caches[0].reset);
    EXPECT_FALSE(report.caches[1].reset);
    EXPECT_EQ(report.caches[1].is_unsupported, refusal == verdict::unsupported);
    EXPECT_EQ(report.caches[1].num_dropped, 0U);
    engine.run_to_idle();
    engine.expect_reference(id);
    EXPECT_EQ(engine.totals().stores_stale, 0U);
    EXPECT_EQ(engine.totals().resets_all_refused, 1U);
    run.tier->answer_resets(verdict::reset);
    EXPECT_TRUE(engine.reset(false, true).success);
    EXPECT_EQ(engine.snapshot().slots.ready, 0U);
  }
}

// RESET-06 (2). A load holds the device until the reset's time is over, and the tier refuses. Guards: the answer comes
// in time and is no success, nothing was dropped, the request in flight ends as it should, and a later reset succeeds.
TEST_P(hazard_reset_more, reset_06_a_reset_that_times_out_is_no_success) {
  using namespace std::chrono_literals;
  tier_run run(options());
  auto& engine = *run.engine;
  engine.warm_host(make_prompt(12));
  const auto id = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 3);
  engine.run();
  const auto load = engine.loads().at(0);
  run.tier->answer_resets(verdict::refused);
  engine.post(reset_prefix_cache{true, true, true, 5s});
  engine.run();
  EXPECT_FALSE(engine.last_reset->has_value());
  engine.system.advance(5s);
  engine.run();
  ASSERT_TRUE(engine.last_reset->has_value());
  const auto report = **engine.last_reset;
  EXPECT_FALSE(report.success);
  ASSERT_EQ(report.caches.size(), 2U);
  EXPECT_FALSE(report.caches[0].reset);
  EXPECT_EQ(report.caches[0].held_by_loads, std::vector<transfer_id>{load});
  EXPECT_FALSE(report.caches[1].reset);
  EXPECT_EQ(report.caches[1].num_dropped, 0U);
  EXPECT_EQ(engine.snapshot().slots.ready, 3U);
  engine.complete(load);
  engine.run_to_idle();
  engine.expect_reference(id);
  EXPECT_EQ(engine.totals().loads_ok, 1U);
  EXPECT_EQ(engine.record(id).summary->usage.num_preemptions, 0U);
  run.tier->answer_resets(verdict::reset);
  EXPECT_TRUE(engine.reset(false, true).success);
  EXPECT_EQ(engine.snapshot().slots.ready, 0U);
}

/// A with a store in flight is preempted by a reset of both caches.
struct stale_store_run {
  explicit stale_store_run(test_engine& engine) {
    a = engine.submit(make_prompt(8), 12);
    EXPECT_TRUE(engine.run_until_tokens(a, 10));
    EXPECT_TRUE(engine.reset(true, true).success);
    engine.run();
    EXPECT_EQ(engine.stores(), engine.traffic().stores_of(a));
    EXPECT_EQ(engine.stores().size(), 1U);
    EXPECT_EQ(engine.request(a)->phase, request_phase::waiting);
  }
  request_id a;
};

// RESET-07. Guards: after a reset nobody waits for a transfer that cannot complete any more: the old store's end frees
// its request, which recomputes, since what was stored is stale.
TEST_P(hazard_reset_more, reset_07_an_old_store_does_not_hold_its_request) {
  test_engine engine(options());
  const stale_store_run run(engine);
  engine.model.begin_epoch_after(engine.traffic().batches().back().step);
  const auto steps = engine.totals().steps;
  engine.complete(engine.stores()[0]);
  engine.expect_reference(run.a);
  EXPECT_LE(engine.totals().steps, steps + 14);
  EXPECT_TRUE(engine.traffic().loads_of(run.a).empty());
  EXPECT_EQ(engine.totals().stores_stale, 1U);
  EXPECT_TRUE(engine.snapshot().requests.empty());
  engine.run_to_idle();
  EXPECT_TRUE(engine.snapshot().is_idle);
}

// RESET-07, variant. Guards: aborted right after the reset its record is gone at once, and the store's late end finds
// nothing amiss.
TEST_P(hazard_reset_more, reset_07_aborted_after_the_reset) {
  test_engine engine(options());
  const stale_store_run run(engine);
  engine.abort(run.a);
  engine.run();
  engine.complete(engine.stores()[0]);
  EXPECT_EQ(engine.record(run.a).summary->reason, finish_reason::abort);
  EXPECT_TRUE(engine.snapshot().is_idle);
  EXPECT_EQ(engine.snapshot().slots.free, 64U);
}

// RESET-11, with the device and one tier instead of two tiers. Guards: every named cache is tried, whichever refuses,
// and the reply has each one's verdict.
TEST_P(hazard_reset_more, reset_11_a_refusal_does_not_keep_the_others_from_being_reset) {
  for (const bool device_refuses : {true, false})
    for (const bool tier_refuses : {true, false}) {
      tier_run run(options());
      auto& engine = *run.engine;
      engine.warm_host(make_prompt(12));
      engine.complete_request(make_prompt(12, 61), 1);
      if (device_refuses) engine.submit(make_prompt(12) + std::vector<token_id>{201}, 2);
      engine.run();
      ASSERT_EQ(engine.loads().size(), device_refuses ? 1U : 0U);
      run.tier->answer_resets(tier_refuses ? verdict::refused : verdict::reset);
      const auto report = engine.reset(false, true);
      EXPECT_EQ(report.success, !device_refuses && !tier_refuses);
      ASSERT_EQ(report.caches.size(), 2U);
      EXPECT_EQ(report.caches[0].reset, !device_refuses);
      EXPECT_EQ(report.caches[1].reset, !tier_refuses);
      EXPECT_EQ(engine.snapshot().blocks.cached > 0, device_refuses);
      EXPECT_EQ(engine.snapshot().slots.ready, tier_refuses ? 6U : 0U);
      engine.run_to_idle();
      run.tier->answer_resets(verdict::reset);
      EXPECT_TRUE(engine.reset(false, true).success);
      EXPECT_EQ(engine.snapshot().slots.free, 64U);
      EXPECT_EQ(engine.snapshot().blocks.free, 99U);
    }
}

}  // namespace
}  // namespace sluice::testing
