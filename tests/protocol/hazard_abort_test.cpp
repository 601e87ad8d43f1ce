// SPDX-License-Identifier: Apache-2.0
//
// Hazards of ending a request while transfers touch its memory.
#include <tuple>

#include <gtest/gtest.h>

#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

/// In which order two transfers end: one message each, or both in one wake-up.
enum class order { first_second, second_first, at_once };

engine_options options(std::uint32_t num_device_blocks, bool is_async) {
  auto options = sized(4, 1, num_device_blocks);
  options.async_scheduling = is_async;
  return options;
}

struct hazard_abort : ::testing::TestWithParam<std::tuple<order, bool>> {
  static order chosen() { return std::get<0>(GetParam()); }
  static bool is_async() { return std::get<1>(GetParam()); }
  /// `between` is called when one has settled, unless both do at once.
  template <class Function>
  void settle(test_engine& engine, transfer_id first, transfer_id second, Function between) {
    if (chosen() == order::at_once) {
      ASSERT_TRUE(engine.device.complete_copies(first.value));
      ASSERT_TRUE(engine.device.complete_copies(second.value));
      engine.run();
      return;
    }
    const bool is_first = chosen() == order::first_second;
    engine.complete(is_first ? first : second);
    between(is_first ? first : second);
    engine.complete(is_first ? second : first);
  }
};

// ABORT-07, F = 1. DESIGN never lets a request wait on a load while a store of its own is unsettled, so the load and
// the store belong to two requests that are aborted together. Guards: each settles alone, in any order; the blocks
// under the load come back with the load, those that a store reads at once.
TEST_P(hazard_abort, abort_07_with_a_load_and_a_store_in_flight) {
  test_engine engine(options(100, is_async()));
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
  test_engine engine(options(100, is_async()));
  const auto a = engine.submit(make_prompt(8), 50);
  ASSERT_TRUE(engine.run_until_tokens(a, 12));  // {0, 1}, then {2}
  engine.abort(a);
  engine.run();
  const auto stores = engine.stores();
  ASSERT_EQ(stores.size(), 2U);
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  if (chosen() == order::second_first)
    engine.complete(stores[1]);
  else
    settle(engine, stores[0], stores[1], [&](transfer_id) { EXPECT_EQ(engine.stores().size(), 1U); });
  EXPECT_TRUE(engine.snapshot().is_idle);
  EXPECT_EQ(engine.totals().stores_ok, 2U);
}

// ABORT-07, F = 1. Guards: a request that waits on a load it joined and on one of its own leaves both; each load keeps
// its own blocks to its own end.
TEST_P(hazard_abort, abort_07_with_two_loads_in_flight) {
  test_engine engine(options(100, is_async()));
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
  if (chosen() == order::second_first)
    engine.complete(loads[1]);
  else
    settle(engine, loads[0], loads[1], [&](transfer_id) { EXPECT_EQ(engine.snapshot().blocks.held, 1U); });
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  EXPECT_TRUE(engine.snapshot().is_idle);
  const auto again = engine.complete_request(make_prompt(12) + std::vector<token_id>{203}, 2);  // good bytes were kept
  EXPECT_EQ(engine.record(again).summary->usage.num_device_cached_tokens, 12U);
  engine.expect_reference(again);
}

std::string name_of(order chosen) {
  switch (chosen) {
    case order::first_second: return "first_second";
    case order::second_first: return "second_first";
    case order::at_once: return "at_once";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(orders, hazard_abort,
                         ::testing::Combine(::testing::Values(order::first_second, order::second_first, order::at_once),
                                            ::testing::Bool()),
                         [](const auto& variant) {
                           return name_of(std::get<0>(variant.param)) + (std::get<1>(variant.param) ? "_async" : "_sync");
                         });

struct hazard_abort_more : both_schedulings {};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_abort_more);

// ABORT-07, F = 1. Guards: a preempted request that waits for its own store, and is aborted then, is gone at once; its
// store settles without it.
TEST_P(hazard_abort_more, abort_07_while_waiting_for_its_own_store) {
  test_engine engine(options(100, GetParam()));
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
TEST_P(hazard_abort_more, abort_08_a_store_outlives_its_request) {
  test_engine engine(options(7, GetParam()));
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

// ABORT-04. Guards: a request that is aborted while it waits for a lookup, or for room after one, leaves no pins: what
// it would have loaded is evicted as usual.
TEST_P(hazard_abort_more, abort_04_lookups_of_aborted_requests_pin_nothing) {
  for (const bool waits_for_answer : {true, false}) {
    auto with_tier = options(9, GetParam());
    with_tier.num_host_slots = 3;
    auto owned = std::make_unique<scripted_tier>(with_tier.num_host_slots);
    auto& tier = *owned;
    with_tier.tier = std::move(owned);
    test_engine engine(std::move(with_tier));
    engine.warm_host(make_prompt(12));
    const auto older = engine.submit(make_prompt(18, 101), 12);  // at last all eight blocks
    ASSERT_TRUE(engine.run_until_tokens(older, 19));
    if (waits_for_answer) tier.answer_lookups(lookup_verdict::retry);
    const auto id = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 4);
    const auto reason = waits_for_answer ? waiting_reason::lookup_pending : waiting_reason::no_blocks;
    ASSERT_TRUE(engine.system.run_until([&] { return engine.request(id) && engine.request(id)->reason == reason; }));
    const auto steps = engine.totals().steps;
    ASSERT_TRUE(engine.system.run_until([&] { return engine.totals().steps == steps + 3; }));
    EXPECT_EQ(engine.request(id)->reason, reason);
    engine.abort(id);
    ASSERT_TRUE(engine.system.run_until([&] { return engine.has_ended(id); }));
    EXPECT_EQ(engine.snapshot().slots.pinned - engine.snapshot().slots.pending, 0U);
    tier.answer_lookups(std::nullopt);
    engine.run_to_idle();
    engine.expect_reference(older);
    EXPECT_EQ(engine.snapshot().slots.pinned, 0U);
    engine.complete_request(make_prompt(12, 61), 1);
    EXPECT_GE(engine.totals().host_evictions, 3U);
    EXPECT_TRUE(engine.reset(false, false).success);
    const auto again = engine.complete_request(make_prompt(12) + std::vector<token_id>{201}, 1);
    EXPECT_EQ(engine.record(again).summary->usage.num_host_cached_tokens, 0U);
  }
}

}  // namespace
}  // namespace sluice::testing
