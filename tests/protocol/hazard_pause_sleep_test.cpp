// SPDX-License-Identifier: Apache-2.0
//
// Hazards of giving device memory back and taking it again.
#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

sleep_engine sleep_with(std::uint32_t level, bool clears_tiers, pause_mode mode = pause_mode::keep) {
  return {level, mode, clears_tiers, 60s};
}

bool is_filled_with(test_engine& engine, std::byte value) {
  const auto pool = engine.pool_memory.view();
  return std::all_of(pool.data, pool.data + pool.num_bytes, [value](std::byte byte) { return byte == value; });
}

/// Level, clear_tiers, weights before the KV cache, asynchronous scheduling.
struct hazard_sleep : ::testing::TestWithParam<std::tuple<std::uint32_t, bool, bool, bool>> {
  static std::uint32_t level() { return std::get<0>(GetParam()); }
  static bool clears_tiers() { return std::get<1>(GetParam()); }
  static bool weights_first() { return std::get<2>(GetParam()); }
  static engine_options options() {
    auto options = sized(4, 1, 100);
    options.async_scheduling = std::get<3>(GetParam());
    return options;
  }

  /// What is woken up first, then the rest. Of level 1 the weights never slept.
  void wake() {
    const bool is_awake_early = level() == 1 && !weights_first();
    EXPECT_EQ(engine.carry_out(wake_engine{weights_first(), !weights_first()}).outcome, control_outcome::done);
    EXPECT_EQ(engine.control(), is_awake_early ? control_state::running : control_state::sleeping);
    if (is_awake_early) return;
    engine.run();
    EXPECT_EQ(engine.totals().steps, steps_asleep);
    EXPECT_EQ(engine.request(later)->phase, request_phase::waiting);
    EXPECT_TRUE(engine.reset(true, false).success);  // legal in the window
    EXPECT_EQ(engine.carry_out(wake_engine{!weights_first(), weights_first()}).outcome, control_outcome::done);
    EXPECT_EQ(engine.control(), control_state::running);
  }

  test_engine engine{options()};
  request_id later;
  std::uint64_t steps_asleep = 0;
};

// PAUSE-01, PAUSE-06. Guards: no step runs before all memory is back, in either order of waking; requests sent
// meanwhile wait and are served; nothing on the device predates the sleep (its memory is poisoned), the tiers survive
// unless told otherwise, and a request that was running goes on.
TEST_P(hazard_sleep, pause_01_06_nothing_runs_or_is_found_before_all_memory_is_back) {
  engine.warm_host(make_prompt(12));
  engine.complete_request(make_prompt(12), 1);  // on the device too
  const auto r = engine.submit(make_prompt(9, 101), 12);
  ASSERT_TRUE(engine.run_until_tokens(r, 14));
  engine.post(sleep_with(level(), clears_tiers()));
  engine.run();
  EXPECT_FALSE(engine.last_control->has_value()) << "stores still read the memory";
  engine.run_to_idle();
  ASSERT_TRUE(engine.last_control->has_value());
  EXPECT_EQ((*engine.last_control)->outcome, control_outcome::done);
  EXPECT_EQ(engine.control(), control_state::sleeping);
  EXPECT_TRUE(is_filled_with(engine, gpu::manual::discarded_poison));
  EXPECT_EQ(engine.snapshot().blocks.free, 99U);
  EXPECT_EQ(engine.snapshot().slots.ready == 0U, clears_tiers());
  steps_asleep = engine.totals().steps;
  later = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 3);
  engine.run();
  EXPECT_EQ(engine.totals().steps, steps_asleep);
  EXPECT_EQ(engine.request(later)->phase, request_phase::waiting);
  if (clears_tiers()) engine.model.begin_epoch_after(engine.snapshot().last_step);
  wake();
  engine.run_to_idle();
  engine.expect_reference(r);
  engine.expect_reference(later);
  EXPECT_EQ(engine.record(later).summary->usage.num_device_cached_tokens, 0U);
  EXPECT_EQ(engine.record(later).summary->usage.num_host_cached_tokens, clears_tiers() ? 0U : 12U);
}

INSTANTIATE_TEST_SUITE_P(levels, hazard_sleep,
                         ::testing::Combine(::testing::Values(1U, 2U), ::testing::Bool(), ::testing::Bool(),
                                            ::testing::Bool()),
                         [](const auto& chosen) {
                           return "level_" + std::to_string(std::get<0>(chosen.param)) +
                                  (std::get<1>(chosen.param) ? "_tiers" : "") +
                                  (std::get<2>(chosen.param) ? "_weights_first" : "_cache_first") +
                                  (std::get<3>(chosen.param) ? "_async" : "_sync");
                         });

struct hazard_sleep_more : both_schedulings {
  static engine_options options() {
    auto options = sized(4, 1, 100);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_sleep_more);

// O131. Guards: a tier that refuses its reset makes a sleep which was to clear it refused; no memory is given back, and
// after a resume everything is served. The same sleep succeeds once the tier does not refuse any more.
TEST_P(hazard_sleep_more, o131_a_tier_that_refuses_a_reset_refuses_the_sleep) {
  auto with_tier = options();
  auto owned = std::make_unique<scripted_tier>(with_tier.num_host_slots);
  auto& tier = *owned;
  with_tier.tier = std::move(owned);
  test_engine engine(std::move(with_tier));
  engine.warm_host(make_prompt(12));
  for (auto verdict : {tier_reset_outcome::verdict::refused, tier_reset_outcome::verdict::unsupported}) {
    tier.answer_resets(verdict);
    const auto report = engine.carry_out(sleep_with(2, true));
    EXPECT_EQ(report.outcome, control_outcome::refused);
    EXPECT_FALSE(report.message.empty());
    ASSERT_EQ(report.caches.size(), 2U);
    EXPECT_FALSE(report.caches[1].reset);
    EXPECT_EQ(report.caches[1].is_unsupported, verdict == tier_reset_outcome::verdict::unsupported);
    EXPECT_EQ(engine.control(), control_state::paused);
    EXPECT_FALSE(is_filled_with(engine, gpu::manual::discarded_poison));
    EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
    const auto id = engine.complete_request(make_prompt(12) + std::vector<token_id>{201}, 3);
    engine.expect_reference(id);
    EXPECT_TRUE(engine.reset(false, false).success);
  }
  EXPECT_EQ(engine.carry_out(sleep_with(2, false)).outcome, control_outcome::done);  // does not ask it
  EXPECT_EQ(engine.carry_out(wake_engine{}).outcome, control_outcome::done);
  tier.answer_resets(tier_reset_outcome::verdict::reset);
  EXPECT_EQ(engine.carry_out(sleep_with(2, true)).outcome, control_outcome::done);
  EXPECT_EQ(engine.snapshot().slots.ready, 0U);
  EXPECT_EQ(engine.carry_out(wake_engine{}).outcome, control_outcome::done);
}

// Section 8. Guards: a sleeping engine cannot be resumed, only woken up; sleeping twice and waking twice have the
// effect of once.
TEST_P(hazard_sleep_more, resuming_does_not_wake_and_repeats_are_harmless) {
  test_engine engine(options());
  const auto id = engine.submit(make_prompt(6), 3);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(engine.carry_out(sleep_with(1, false)).outcome, control_outcome::done);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::refused);
  EXPECT_EQ(engine.control(), control_state::sleeping);
  EXPECT_EQ(engine.carry_out(sleep_with(2, false)).outcome, control_outcome::done);  // deeper
  EXPECT_EQ(engine.carry_out(wake_engine{false, true}).outcome, control_outcome::done);
  engine.run();
  EXPECT_EQ(engine.control(), control_state::sleeping);
  EXPECT_TRUE(engine.traffic().batches().empty());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(engine.carry_out(wake_engine{}).outcome, control_outcome::done);
  EXPECT_EQ(engine.control(), control_state::running);
  engine.run_to_idle();
  engine.expect_reference(id);
}

// Section 8. Guards: a wake-up ends sleeps, not pauses.
TEST_P(hazard_sleep_more, a_wake_up_does_not_end_a_pause) {
  test_engine engine(options());
  EXPECT_EQ(engine.carry_out(pause_engine{pause_mode::keep, false, false, 5s}).outcome, control_outcome::done);
  const auto id = engine.submit(make_prompt(6), 3);
  const auto report = engine.carry_out(wake_engine{});
  EXPECT_EQ(report.outcome, control_outcome::done);
  EXPECT_FALSE(report.message.empty());
  engine.run();
  EXPECT_EQ(engine.control(), control_state::paused);
  EXPECT_TRUE(engine.traffic().batches().empty());
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  engine.run_to_idle();
  engine.expect_reference(id);
}

// Section 8, sleep with mode abort and with a load in flight. Guards: memory is given back only after the load's
// physical end, whoever waited for it.
TEST_P(hazard_sleep_more, memory_is_kept_until_a_load_without_waiters_has_settled) {
  test_engine engine(options());
  engine.warm_host(make_prompt(12));
  const auto id = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 3);
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  engine.post(sleep_with(1, false, pause_mode::abort));
  engine.run();
  EXPECT_EQ(engine.record(id).summary->reason, finish_reason::abort);
  EXPECT_FALSE(engine.last_control->has_value());
  EXPECT_FALSE(is_filled_with(engine, gpu::manual::discarded_poison));
  engine.complete(engine.loads()[0]);
  ASSERT_TRUE(engine.last_control->has_value());
  EXPECT_EQ((*engine.last_control)->outcome, control_outcome::done);
  EXPECT_TRUE(is_filled_with(engine, gpu::manual::discarded_poison));
  EXPECT_EQ(engine.carry_out(wake_engine{}).outcome, control_outcome::done);
  const auto again = engine.complete_request(make_prompt(12) + std::vector<token_id>{201}, 3);
  EXPECT_EQ(engine.record(again).summary->usage.num_host_cached_tokens, 12U);
  engine.expect_reference(again);
}

// Section 8. Guards: a sleep that cannot come to rest in time gives nothing back, not even later, and names what holds
// the device.
TEST_P(hazard_sleep_more, a_sleep_that_timed_out_gives_nothing_back_later) {
  test_engine engine(options());
  engine.warm_host(make_prompt(12));
  const auto id = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 3);
  engine.run();
  const auto load = engine.loads().at(0);
  engine.post(sleep_engine{2, pause_mode::keep, true, 5s});
  engine.run();
  engine.system.advance(5s);
  engine.run();
  ASSERT_TRUE(engine.last_control->has_value());
  EXPECT_EQ((*engine.last_control)->outcome, control_outcome::timed_out);
  EXPECT_EQ((*engine.last_control)->caches.at(0).held_by_loads, std::vector<transfer_id>{load});
  engine.complete(load);
  EXPECT_EQ(engine.control(), control_state::paused);
  EXPECT_FALSE(is_filled_with(engine, gpu::manual::discarded_poison));
  EXPECT_EQ(engine.snapshot().slots.ready, 3U);
  EXPECT_EQ(engine.carry_out(wake_engine{}).outcome, control_outcome::done);
  engine.run_to_idle();
  engine.expect_reference(id);
}

// Section 8. Guards: a sleep that stores hold until its time is over says what it has cleared and what has not ended;
// when the stores end later no memory is given back.
TEST_P(hazard_sleep_more, a_sleep_that_stores_hold_says_what_was_cleared) {
  test_engine engine(options());
  engine.submit(make_prompt(8), 1);
  engine.run();
  ASSERT_EQ(engine.stores().size(), 1U);
  engine.post(sleep_engine{1, pause_mode::keep, true, 5s});
  engine.run();
  EXPECT_FALSE(engine.last_control->has_value());
  engine.system.advance(5s);
  engine.run();
  ASSERT_TRUE(engine.last_control->has_value());
  EXPECT_EQ((*engine.last_control)->outcome, control_outcome::timed_out);
  ASSERT_EQ((*engine.last_control)->caches.size(), 2U);
  EXPECT_TRUE((*engine.last_control)->caches[0].reset && (*engine.last_control)->caches[1].reset);
  EXPECT_TRUE((*engine.last_control)->caches[0].held_by_loads.empty());
  EXPECT_EQ((*engine.last_control)->caches[0].num_stores_in_flight, 1U);
  engine.run_to_idle();
  EXPECT_EQ(engine.control(), control_state::paused);
  EXPECT_FALSE(is_filled_with(engine, gpu::manual::discarded_poison));
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
}

}  // namespace
}  // namespace sluice::testing
