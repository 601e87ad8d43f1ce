// SPDX-License-Identifier: Apache-2.0
//
// Hazards of planning a step ahead. All but the last hold, with the same numbers, one step after the other.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct hazard_async : both_schedulings {
  static engine_options options(std::uint32_t num_device_blocks) {
    auto options = sized(4, 1, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_async);

// ASYNC-01, with and without a host tier. Guards: four requests that fill the pool and all need a block at once cost
// one preemption, not all of them, and tokens go on.
TEST_P(hazard_async, async_01_no_more_preemptions_than_necessary) {
  for (const std::uint32_t num_host_slots : {0, 64}) {
    auto full = options(9);
    full.num_host_slots = num_host_slots;
    test_engine engine(std::move(full));
    EXPECT_EQ(engine.carry_out(pause_engine{pause_mode::keep, false, false, {}}).outcome, control_outcome::done);
    std::vector<request_id> ids;
    for (token_id first : {1, 61, 121, 181}) ids.push_back(engine.submit(make_prompt(7, first), 6));
    engine.run();
    engine.post(resume_engine{});
    ASSERT_TRUE(engine.system.run_until([&] { return engine.totals().preemptions_capacity > 0; }));
    EXPECT_EQ(engine.totals().preemptions_capacity, 1U);
    EXPECT_EQ(engine.request(ids[3])->phase, request_phase::waiting);  // the last one
    for (auto id : ids) EXPECT_GE(engine.request(id)->num_tokens, 8U);
    const auto steps = engine.totals().steps;
    const auto tokens = engine.totals().generation_tokens;
    const auto has_five_steps_more = [&] { return engine.totals().steps >= steps + 5; };
    while (!has_five_steps_more() && engine.system.run_until(has_five_steps_more) == false)
      if (engine.device.run_everything() == 0) break;
    EXPECT_GT(engine.totals().generation_tokens, tokens);
    engine.run_to_idle();
    for (auto id : ids) engine.expect_reference(id);
    EXPECT_LE(engine.totals().preemptions_capacity, 3U);
    EXPECT_EQ(engine.record(ids[0]).summary->usage.num_preemptions, 0U);
  }
}

// ASYNC-02. Guards: results that are dropped after a preemption leave no debt: the request needs as many steps as it
// has tokens left, and gets exactly as many tokens as it asked for.
TEST_P(hazard_async, async_02_dropped_results_do_not_delay_a_request) {
  for (const std::uint32_t num_tokens : {9U, 10U, 11U}) {
    auto device_only = options(100);
    device_only.num_host_slots = 0;
    test_engine engine(std::move(device_only));
    const auto id = engine.submit(make_prompt(8), 8);
    ASSERT_TRUE(engine.run_until_tokens(id, num_tokens));
    engine.post_reset(true, false);
    ASSERT_TRUE(engine.system.run_until([&] { return engine.totals().preemptions_reset == 1; }));
    const auto num_left = 16 - engine.request(id)->num_tokens;
    const auto attempt = engine.request(id)->attempt;
    engine.run_to_idle();
    std::size_t num_steps = 0;
    for (const auto& entry : engine.traffic().entries_of(id)) num_steps += entry.attempt >= attempt;
    EXPECT_EQ(num_steps, num_left);
    EXPECT_EQ(engine.record(id).tokens.size(), 8U);
    engine.expect_reference(id);
  }
}

// ASYNC-06. Guards: a reset of running requests succeeds at once, with a step in flight, and repeatedly.
TEST_P(hazard_async, async_06_a_step_in_flight_does_not_refuse_a_reset) {
  auto device_only = options(100);
  device_only.num_host_slots = 0;
  test_engine engine(std::move(device_only));
  const auto id = engine.submit(make_prompt(40), 30);
  for (std::uint32_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(engine.run_until_tokens(id, 40 + 6 * i));
    const auto report = engine.reset(true, false);
    EXPECT_TRUE(report.success);
    EXPECT_TRUE(report.caches.at(0).held_by_loads.empty());
    EXPECT_EQ(engine.totals().preemptions_reset, i);
  }
  engine.run_to_idle();
  engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
