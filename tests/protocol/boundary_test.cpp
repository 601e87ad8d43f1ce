// SPDX-License-Identifier: Apache-2.0
//
// The story of the project, one message at a time: a reset preempts, the next step reports the preemption and creates a
// load; the flush waits for older stores and leaves the new load alone.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

/// A request that has decoded three chunks' worth and whose stores are held.
struct boundary_test : ::testing::Test {
  engine_options options() {
    engine_options options;
    options.block_size = 4;
    options.blocks_per_chunk = 3;
    return options;
  }
};

using ids = std::vector<transfer_id>;

// (a) All pending stores of a preempted request are flushed, and the step is dispatched only after they settled.
TEST_F(boundary_test, flushes_every_pending_store_of_a_preempted_request) {
  test_engine engine(options());
  const auto a = engine.submit(make_prompt(24), 40);
  while (engine.request(a) == std::nullopt || engine.request(a)->num_tokens < 44) engine.run_step();
  const auto stores = engine.stores();
  ASSERT_EQ(stores.size(), 2U);  // {0..5} by the prefill, {6..8} while decoding
  const auto report = engine.reset(true, false);
  EXPECT_TRUE(report.success);
  ASSERT_TRUE(engine.system.deliver<step_boundary>(engine.handler));
  ASSERT_TRUE(engine.system.deliver<current_step_loads>(engine.loader));
  ASSERT_TRUE(engine.system.deliver_response(engine.handler));
  const auto flush = engine.system.peek<flush_stores>(engine.storer);
  ASSERT_TRUE(flush.has_value());
  EXPECT_EQ(flush->ids, stores);
  const auto steps = engine.totals().steps;
  engine.run();
  EXPECT_TRUE(engine.snapshot().is_boundary_open);
  EXPECT_EQ(engine.totals().steps, steps);
  engine.complete(stores[0]);
  EXPECT_EQ(engine.totals().steps, steps);
  engine.complete(stores[1]);
  EXPECT_GT(engine.totals().steps, steps);
  EXPECT_EQ(engine.totals().flushed_stores, 2U);
  engine.run_to_idle();
  engine.expect_reference(a);
}

}  // namespace
}  // namespace sluice::testing
