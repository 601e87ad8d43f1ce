// SPDX-License-Identifier: Apache-2.0
//
// Hazards of loads that fail. Lookups that are answered late: hazard_abort_timeout_test.cpp.
#include <algorithm>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct hazard_loadfail : both_schedulings {
  static engine_options options() {
    auto options = sized(4, 1, 100);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_loadfail);

// LOADFAIL-01. Guards: the failure of a load wakes an engine that has nothing else to do.
TEST_P(hazard_loadfail, loadfail_01_a_failed_load_wakes_an_idle_engine) {
  for (const std::size_t num_good : {0, 1, 2}) {
    test_engine engine(options());
    engine.warm_host(make_prompt(12));
    const auto a = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 4);
    engine.run();
    engine.fail(engine.loads().at(0), num_good);
    engine.expect_reference(a);  // no copy but its load has ended, and no clock has moved
    EXPECT_EQ(engine.traffic().entries_of(a).at(0).first_position, 4 * num_good);
    EXPECT_EQ(engine.totals().loads_failed, 1U);
  }
}

// LOADFAIL-01. Guards: a load that the device does not even take fails the same way, and what is in the tier stays.
TEST_P(hazard_loadfail, loadfail_01_a_load_that_the_device_refuses) {
  test_engine engine(options());
  engine.warm_host(make_prompt(12));
  ASSERT_TRUE(engine.device.refuse_next_copies("load", gpu::error{"enqueue_copies", 5, "no", 0}));
  const auto a = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 4);
  engine.run();
  engine.expect_reference(a);
  EXPECT_EQ(engine.snapshot().slots.ready, 3U);
}

// LOADFAIL-01. Guards: that a load was refused once is of no account after a preemption: what was stored is loaded then.
TEST_P(hazard_loadfail, loadfail_01_after_a_preemption_a_refused_request_loads_again) {
  test_engine engine(options());
  engine.warm_host(make_prompt(12));
  ASSERT_TRUE(engine.device.refuse_next_copies("load", gpu::error{"enqueue_copies", 5, "no", 0}));
  const auto a = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 12);
  ASSERT_TRUE(engine.run_until_tokens(a, 18));
  EXPECT_EQ(engine.totals().loads_failed, 1U);
  engine.reset(true, false);
  engine.run_to_idle();
  EXPECT_EQ(engine.record(a).summary->usage.num_preemptions, 1U);
  EXPECT_EQ(engine.totals().loads_ok, 1U);
  const auto loaded = engine.traffic().loaded_ordinals(a);
  EXPECT_TRUE(std::ranges::includes(loaded, ordinals{0, 1, 2}));
  engine.expect_reference(a);
}

/// First step in which the request computes something that ends beyond `position`.
step_id step_beyond(test_engine& engine, request_id id, std::uint32_t position) {
  for (const auto& batch : engine.traffic().batches())
    for (const auto& entry : batch.entries)
      if (entry.request == id && entry.first_position + entry.tokens.size() > position) return batch.step;
  return {};
}

// LOADFAIL-04, in chunks of a block. Guards: blocks that are rebuilt after a failed load are read by nobody before they
// are complete: who shares them, at the same time or later, has the right tokens.
TEST_P(hazard_loadfail, loadfail_04_blocks_under_rebuild_are_not_read) {
  for (const std::size_t num_good : {0, 1, 2, 3}) {
    SCOPED_TRACE(num_good);
    auto small_steps = options();
    small_steps.max_num_batched_tokens = 4;
    test_engine engine(std::move(small_steps));
    engine.warm_host(make_prompt(16));
    const auto a = engine.submit(make_prompt(16) + std::vector<token_id>{201}, 4);
    const auto b = engine.submit(make_prompt(16) + std::vector<token_id>{202}, 4);
    engine.run();
    ASSERT_EQ(engine.loads().size(), 1U);
    ASSERT_EQ(engine.request(b)->loads.size(), 1U);
    engine.fail(engine.loads()[0], num_good);
    engine.run();
    for (auto id : {a, b}) engine.expect_reference(id);
    EXPECT_GE(step_beyond(engine, b, 16).value, step_beyond(engine, a, 15).value);
    EXPECT_EQ(engine.traffic().entries_of(a).at(0).first_position, 4 * num_good);
    EXPECT_GT(engine.model.num_verified_positions(), 0U);
    EXPECT_EQ(engine.totals().loads_ok, 0U);
  }
}

}  // namespace
}  // namespace sluice::testing
