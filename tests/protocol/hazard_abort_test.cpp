// SPDX-License-Identifier: Apache-2.0
//
// Hazards of ending a request while transfers touch its memory.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

/// In which order two transfers end: one message each, or both in one wake-up.
enum class order { first_second, second_first, at_once };

struct hazard_abort : ::testing::TestWithParam<order> {
  /// `between` is called when one has settled, unless both do at once.
  template <class Function>
  void settle(test_engine& engine, transfer_id first, transfer_id second, Function between) {
    if (GetParam() == order::at_once) {
      ASSERT_TRUE(engine.device.complete_copies(first.value));
      ASSERT_TRUE(engine.device.complete_copies(second.value));
      engine.run();
      return;
    }
    const bool is_first = GetParam() == order::first_second;
    engine.complete(is_first ? first : second);
    between(is_first ? first : second);
    engine.complete(is_first ? second : first);
  }
};

// ABORT-07, F = 1. DESIGN never lets a request wait on a load while a store of its own is unsettled, so the load and
// the store belong to two requests that are aborted together. Guards: each settles alone, in any order; the blocks
// under the load come back with the load, those that a store reads at once.
TEST_P(hazard_abort, abort_07_with_a_load_and_a_store_in_flight) {
  test_engine engine(sized(4, 1, 100));
  engine.warm_host(make_prompt(8, 101));
  const auto a = engine.submit(make_prompt(8), 50);
  ASSERT_TRUE(engine.run_until_tokens(a, 10));
  const auto b = engine.submit(make_prompt(8, 101) + std::vector<token_id>{201}, 4);
  ASSERT_TRUE(engine.system.run_until([&] { return !engine.loads().empty(); }));
  const auto load = engine.loads().at(0);
  engine.abort(b);
  engine.abort(a);
  engine.run();
  const auto stores = engine.traffic().stores_of(a);
  ASSERT_EQ(engine.stores(), stores);
  EXPECT_TRUE(engine.snapshot().requests.empty());
  EXPECT_EQ(engine.snapshot().blocks.held, 2U);
  settle(engine, load, stores.back(), [&](transfer_id ended) {
    EXPECT_EQ(engine.snapshot().blocks.held, ended == load ? 0U : 2U);
    EXPECT_FALSE(engine.snapshot().is_idle);
  });
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  EXPECT_TRUE(engine.snapshot().is_idle);
  EXPECT_EQ(engine.record(a).summary->reason, finish_reason::abort);
  EXPECT_EQ(engine.record(b).summary->reason, finish_reason::abort);
}

// ABORT-07, F = 1. Guards: two stores of an aborted request settle without its record. Copies of one stream end in
// order, so the second brings the first along.
TEST_P(hazard_abort, abort_07_with_two_stores_in_flight) {
  test_engine engine(sized(4, 1, 100));
  const auto a = engine.submit(make_prompt(8), 50);
  ASSERT_TRUE(engine.run_until_tokens(a, 14));  // {0, 1}, then {2}
  engine.abort(a);
  engine.run();
  const auto stores = engine.stores();
  ASSERT_EQ(stores.size(), 2U);
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  if (GetParam() == order::second_first)
    engine.complete(stores[1]);
  else
    settle(engine, stores[0], stores[1], [&](transfer_id) { EXPECT_EQ(engine.stores().size(), 1U); });
  EXPECT_TRUE(engine.snapshot().is_idle);
  EXPECT_EQ(engine.totals().stores_ok, 2U);
}

// ABORT-07, F = 1. Guards: a request that waits on a load it joined and on one of its own leaves both; each load keeps
// its own blocks to its own end.
TEST_P(hazard_abort, abort_07_with_two_loads_in_flight) {
  test_engine engine(sized(4, 1, 100));
  engine.warm_host(make_prompt(12));
  const auto x = engine.submit(make_prompt(8) + std::vector<token_id>{201}, 4);
  const auto y = engine.submit(make_prompt(12) + std::vector<token_id>{202}, 4);
  engine.run();
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 2U);
  ASSERT_EQ(engine.request(y)->loads.size(), 2U);
  engine.abort(y);
  engine.abort(x);
  engine.run();
  EXPECT_TRUE(engine.snapshot().requests.empty());
  EXPECT_EQ(engine.snapshot().blocks.held, 3U);
  if (GetParam() == order::second_first)
    engine.complete(loads[1]);
  else
    settle(engine, loads[0], loads[1], [&](transfer_id) { EXPECT_EQ(engine.snapshot().blocks.held, 1U); });
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  EXPECT_TRUE(engine.snapshot().is_idle);
  const auto again = engine.complete_request(make_prompt(12) + std::vector<token_id>{203}, 2);  // good bytes were kept
  EXPECT_EQ(engine.record(again).summary->usage.num_device_cached_tokens, 12U);
  engine.expect_reference(again);
}

INSTANTIATE_TEST_SUITE_P(orders, hazard_abort,
                         ::testing::Values(order::first_second, order::second_first, order::at_once),
                         [](const auto& chosen) {
                           switch (chosen.param) {
                             case order::first_second: return "first_second";
                             case order::second_first: return "second_first";
                             case order::at_once: return "at_once";
                           }
                           return "";
                         });

// ABORT-07, F = 1. Guards: a preempted request that waits for its own store, and is aborted then, is gone at once; its
// store settles without it.
TEST(hazard_abort_more, abort_07_while_waiting_for_its_own_store) {
  test_engine engine(sized(4, 1, 100));
  const auto a = engine.submit(make_prompt(8), 50);
  ASSERT_TRUE(engine.run_until_tokens(a, 10));
  EXPECT_TRUE(engine.reset(true, false).success);
  engine.run();
  ASSERT_EQ(engine.request(a)->phase, request_phase::waiting);
  ASSERT_EQ(engine.request(a)->num_unsettled_stores, 1U);
  ASSERT_TRUE(engine.loads().empty());
  engine.abort(a);
  engine.run();
  engine.complete(engine.stores().at(0));
  EXPECT_TRUE(engine.snapshot().is_idle);
  EXPECT_EQ(engine.record(a).summary->reason, finish_reason::abort);
}

// ABORT-08, F = 1. Guards: a store outlives its request's record, and whoever takes the blocks waits for it.
TEST(hazard_abort_more, abort_08_a_store_outlives_its_request) {
  test_engine engine(sized(4, 1, 7));
  const auto a = engine.submit(make_prompt(8), 1);
  engine.run();
  ASSERT_TRUE(engine.has_ended(a));
  ASSERT_TRUE(engine.snapshot().requests.empty());
  const auto store = engine.stores().at(0);
  const auto source = engine.device_bytes(store);
  const auto b = engine.submit(make_prompt(24, 101), 1);  // all six blocks
  engine.run();
  EXPECT_EQ(engine.snapshot().blocks.held, 6U);
  EXPECT_TRUE(engine.traffic().entries_of(b).empty());
  EXPECT_EQ(engine.device_bytes(store), source);
  engine.complete(store);
  ASSERT_TRUE(engine.has_ended(b));
  EXPECT_EQ(engine.tier_bytes(store), source);
  EXPECT_NE(engine.device_bytes(store), source);
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  engine.run_to_idle();
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto again = engine.complete_request(make_prompt(8) + std::vector<token_id>{201}, 2);
  EXPECT_EQ(engine.traffic().loaded_ordinals(again), (ordinals{0, 1}));
  engine.expect_reference(again);
  engine.expect_reference(b);
}

}  // namespace
}  // namespace sluice::testing
