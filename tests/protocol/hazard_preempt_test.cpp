// SPDX-License-Identifier: Apache-2.0
//
// Hazards of preempting a request whose KV is being stored.
#include <algorithm>

#include <gtest/gtest.h>

#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct hazard_preempt : both_schedulings {
  static engine_options options(std::uint32_t blocks_per_chunk, std::uint32_t num_device_blocks) {
    auto options = sized(4, blocks_per_chunk, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_preempt);

std::size_t num_batches_on(test_engine& engine, const std::string& stream) {
  const auto queue = engine.device.outstanding(stream);
  return static_cast<std::size_t>(std::count_if(queue.begin(), queue.end(), [](auto& operation) {
    return operation.kind == gpu::manual::operation_kind::copies;
  }));
}

// PREEMPT-01, F = 3. Guards: a boundary that reaches the handler twice, or again when its step has run, has the effect
// of once: one copy, one settlement, one dispatch.
TEST_P(hazard_preempt, preempt_01_the_handler_may_be_asked_twice) {
  test_engine engine(options(3, 100));
  const auto a = engine.submit(make_prompt(12), 8);
  ASSERT_TRUE(engine.run_until_tokens(a, 14));
  EXPECT_TRUE(engine.reset(true, false).success);
  ASSERT_TRUE(engine.run_until_boundary());
  const auto boundary = engine.system.peek<step_boundary>(engine.handler);
  ASSERT_TRUE(boundary.has_value());
  ASSERT_EQ(boundary->pending.size(), 1U);
  const auto store = boundary->pending[0].id;
  compat::anon_mail(*boundary).send(engine.handler);
  engine.run();
  const auto source = engine.device_bytes(store);
  EXPECT_EQ(num_batches_on(engine, "store"), 1U);
  const auto steps = engine.totals().steps;
  engine.complete(store);
  EXPECT_EQ(engine.totals().stores_ok, 1U);
  EXPECT_EQ(engine.totals().flushed_stores, 1U);
  EXPECT_EQ(engine.totals().steps, steps + 2);  // the one with the boundary computes nothing, the next loads A
  EXPECT_EQ(engine.tier_bytes(store), source);
  compat::anon_mail(*boundary).send(engine.handler);
  engine.run();
  EXPECT_EQ(engine.totals().steps, steps + 2);
  EXPECT_EQ(engine.totals().boundaries, 1U);
  EXPECT_EQ(num_batches_on(engine, "store"), 0U);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(a), (ordinals{0, 1, 2}));
  engine.expect_reference(a);
}

// PREEMPT-06, F = 1. Guards: what a resumed request looks up covers the tokens it had generated; until its stores have
// settled nothing is computed that could overwrite their source.
TEST_P(hazard_preempt, preempt_06_resuming_finds_generated_tokens_too) {
  test_engine engine(options(1, 100));
  const auto a = engine.submit(make_prompt(8), 12);
  ASSERT_TRUE(engine.run_until_tokens(a, 13));  // its 14th token is on the way, asynchronous: its 15th too
  EXPECT_TRUE(engine.reset(true, false).success);
  EXPECT_EQ(engine.request(a)->num_tokens, GetParam() ? 15U : 14U);
  const auto other = engine.submit(make_prompt(40, 101), 2);
  engine.run();
  const auto stores = engine.traffic().stores_of(a);
  EXPECT_EQ(engine.traffic().flushed(), stores);
  EXPECT_EQ(engine.traffic().stored_ordinals(a), (ordinals{0, 1, 2}));
  const auto num_batches = engine.traffic().batches().size();
  for (auto store : stores) {
    EXPECT_EQ(engine.traffic().batches().size(), num_batches);
    const auto source = engine.device_bytes(store);
    engine.complete(store);
    EXPECT_EQ(engine.tier_bytes(store), source);
  }
  EXPECT_TRUE(engine.has_ended(other));
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(a), (ordinals{0, 1, 2}));
  EXPECT_EQ(engine.traffic().entries_of(a).back().tokens.size(), 1U);
  EXPECT_GE(engine.model.num_verified_positions(), 12U);
  engine.expect_reference(a);
}

/// Six usable blocks. A has just computed its two blocks when an older request needs one of them: A's store was created
/// in the commit before the plan that preempts it. The older one starts a step before A, asynchronous two, and A's step
/// is committed only after another one was planned.
struct late_store_run {
  explicit late_store_run(test_engine& engine) {
    const bool is_async = engine.options.async_scheduling;
    older = engine.submit(make_prompt(is_async ? 13 : 15, 101), is_async ? 11 : 9);
    a = engine.submit(make_prompt(8, 1), 8);
    EXPECT_TRUE(engine.run_until_boundary());
    EXPECT_EQ(engine.totals().preemptions_capacity, 1U);
    EXPECT_EQ(engine.request(a)->num_tokens, 9U);
    const auto submitted = engine.system.peek<submit_stores>(engine.storer);
    EXPECT_TRUE(submitted.has_value()) << "the store was delivered already";
    const auto stores = engine.traffic().stores_of(a);
    EXPECT_EQ(stores.size(), 1U);
    store = stores.at(0);
    EXPECT_EQ(engine.traffic().ordinals_of(store), (ordinals{0, 1}));
  }

  /// Everything of the boundary runs before the store actor gets its first message.
  void open_flush(test_engine& engine) {
    ASSERT_TRUE(engine.system.deliver<step_boundary>(engine.handler));
    ASSERT_TRUE(
        engine.system.run_until([&] { return engine.system.peek<current_step_loads>(engine.loader).has_value(); }));
    ASSERT_TRUE(engine.system.deliver<current_step_loads>(engine.loader));
    ASSERT_TRUE(engine.system.deliver_response(engine.handler));
    engine.run();
    EXPECT_EQ(engine.traffic().flushed(), std::vector<transfer_id>{store});
    EXPECT_TRUE(engine.snapshot().is_boundary_open);
  }

  request_id older, a;
  transfer_id store;
};

// PREEMPT-09, F = 1. Guards: the flush names a store that was not submitted yet when its request was preempted, and the
// host gets the victim's data, not that of the request which takes its blocks.
TEST_P(hazard_preempt, preempt_09_a_store_created_with_the_preemption_is_flushed) {
  test_engine engine(options(1, 7));
  late_store_run run(engine);
  const auto source = engine.device_bytes(run.store);
  run.open_flush(engine);
  const auto steps = engine.totals().steps;
  engine.complete(run.store);
  EXPECT_GT(engine.totals().steps, steps);
  EXPECT_EQ(engine.tier_bytes(run.store), source);
  engine.run_to_idle();
  EXPECT_EQ(engine.tier_bytes(run.store), source);
  const auto taken = engine.traffic().entries_of(run.older).back().block_tables.at(0);
  for (auto block : engine.traffic().transfer(run.store).blocks())
    EXPECT_EQ(std::count(taken.begin(), taken.end(), block), 1);
  engine.expect_reference(run.older);
  engine.expect_reference(run.a);
}

// PREEMPT-09, F = 1, cancel variant. Guards: after a failed store its keys are absent, and the recompute stores each
// block once.
TEST_P(hazard_preempt, preempt_09_blocks_of_a_failed_store_are_stored_again) {
  auto with_tier = options(1, 7);
  auto owned = std::make_unique<scripted_tier>(with_tier.num_host_slots);
  auto& tier = *owned;
  with_tier.tier = std::move(owned);
  test_engine engine(std::move(with_tier));
  late_store_run run(engine);
  const auto keys = tier.offers().back().keys;
  ASSERT_EQ(keys.size(), 2U);
  run.open_flush(engine);
  const auto steps = engine.totals().steps;
  engine.fail(run.store, 0);
  EXPECT_GT(engine.totals().steps, steps);
  for (const auto& key : keys) EXPECT_EQ(tier.verdict(key), lookup_verdict::miss);
  EXPECT_EQ(engine.totals().stores_failed, 1U);
  engine.run_to_idle();
  for (const auto& key : keys) EXPECT_EQ(tier.verdict(key), lookup_verdict::hit);
  const auto all = engine.traffic().stored_ordinals(run.a);
  for (std::uint32_t ordinal : {0U, 1U})
    EXPECT_EQ(std::count(all.begin(), all.end(), ordinal), 2);  // failed, then good
  EXPECT_TRUE(engine.traffic().loads_of(run.a).empty());
  engine.expect_reference(run.older);
  engine.expect_reference(run.a);
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto again = engine.complete_request(make_prompt(8, 1) + std::vector<token_id>{201}, 1);
  EXPECT_EQ(engine.traffic().loaded_ordinals(again), (ordinals{0, 1}));
  engine.expect_reference(again);
}

// PREEMPT-05, F = 1, offload `preempted`. Guards: what a victim's blocks hold is stored before the request that takes
// them computes anything there; the victim resumes with a load; who was never preempted leaves no keys.
TEST_P(hazard_preempt, preempt_05_a_victims_blocks_are_not_written_before_they_are_stored) {
  auto only_preempted = options(1, 7);
  only_preempted.adjust = [](scheduler_config& config) { config.offload = offload_scope::preempted; };
  test_engine engine(std::move(only_preempted));
  const auto never = engine.complete_request(make_prompt(12, 61), 2);
  EXPECT_EQ(engine.snapshot().slots.free, 64U);
  const auto older = engine.submit(make_prompt(GetParam() ? 13 : 15, 101), GetParam() ? 11 : 9);
  const auto a = engine.submit(make_prompt(8), 8);
  ASSERT_TRUE(engine.run_until_boundary());
  EXPECT_EQ(engine.totals().preemptions_capacity, 1U);
  engine.run();
  const auto stores = engine.stores();
  ASSERT_EQ(stores.size(), 1U);
  EXPECT_EQ(engine.traffic().stores_of(a), stores);
  EXPECT_EQ(engine.traffic().flushed(), stores);
  const auto source = engine.device_bytes(stores[0]);
  const auto num_batches = engine.traffic().batches().size();
  engine.run();
  EXPECT_EQ(engine.traffic().batches().size(), num_batches);
  EXPECT_EQ(engine.device_bytes(stores[0]), source);
  engine.complete(stores[0]);
  EXPECT_GT(engine.traffic().batches().size(), num_batches);
  EXPECT_EQ(engine.tier_bytes(stores[0]), source);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(a), (ordinals{0, 1}));
  EXPECT_TRUE(engine.traffic().stores_of(never).empty());
  EXPECT_TRUE(engine.traffic().stores_of(older).empty());
  for (auto id : {never, older, a}) engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
