// SPDX-License-Identifier: Apache-2.0
//
// What a plan does to transfers, and what is left of it when it is withdrawn.
#include <gtest/gtest.h>

#include "scheduler_fixture.hpp"

namespace sluice {
namespace {

using unit::scheduler_fixture;
using unit::to_text;
using unit::tokens_from;
using ids = std::vector<std::uint64_t>;
using blocks = std::vector<std::uint32_t>;
using faults = std::vector<std::string>;

// Guards: the flush of re-used blocks names exactly the stores that read one of them.
TEST(plan_effects, reused_stores_are_those_of_blocks_given_out_for_writing) {
  scheduler_fixture engine({.num_device_blocks = 7, .num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8), false);     // store 1 reads blocks 1 and 2
  engine.compute_and_end(2, tokens_from(1000, 4), false);  // store 2 reads block 3
  EXPECT_EQ(unit::free_list(engine.state.pool), (blocks{4, 5, 6, 2, 1, 3}));
  engine.submit(3, tokens_from(2000, 11));
  EXPECT_EQ(engine.run_step().reused_stores, std::vector<transfer_id>{});
  engine.submit(4, tokens_from(3000, 6));  // takes 2 and 1
  EXPECT_EQ(unit::values(engine.plan().reused_stores), (ids{1}));
  engine.settle(transfer_direction::store, {1});
  EXPECT_TRUE(engine.plan().reused_stores.empty());
}

// Guards: each store once and rising, also when several of its blocks, or blocks of several stores, are taken.
TEST(plan_effects, reused_stores_rise_and_are_named_once) {
  scheduler_fixture engine({.num_device_blocks = 4, .num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8), false);
  engine.compute_and_end(2, tokens_from(1000, 4), false);
  engine.submit(3, tokens_from(2000, 12));
  const auto plan = engine.plan();
  EXPECT_EQ(unit::values(plan.entries.at(0).new_blocks[0]), (blocks{2, 1, 3}));
  EXPECT_EQ(unit::values(plan.reused_stores), (ids{1, 2}));
}

// Guards: a prefix hit on a fenced block is no re-use.
TEST(plan_effects, a_hit_on_a_fenced_block_is_no_reuse) {
  scheduler_fixture engine({.num_device_blocks = 4, .num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8), false);
  engine.submit(2, tokens_from(0, 9));
  const auto plan = engine.run_step();
  EXPECT_EQ(unit::values(plan.admissions.at(0).tables.at(0).shared), (blocks{1, 2}));
  EXPECT_TRUE(plan.reused_stores.empty());
}

// Guards: a load's targets are written, too.
TEST(plan_effects, load_targets_are_reuse) {
  scheduler_fixture engine({.num_device_blocks = 3, .num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.compute_and_end(2, tokens_from(1000, 8), false);  // store 2 reads blocks 2 and 1
  engine.submit(3, tokens_from(0, 8));
  const auto plan = engine.plan();
  ASSERT_TRUE(plan.admissions.at(0).load.has_value());
  EXPECT_EQ(unit::values(plan.reused_stores), (ids{2}));
}

// Guards: a request with unsettled stores of its own is not admitted, and says why.
TEST(plan_effects, own_stores_hold_an_admission) {
  scheduler_fixture engine({.num_host_slots = 8});
  engine.submit(1, tokens_from(0, 8));
  engine.submit(2, tokens_from(1000, 3));
  engine.run_step();
  EXPECT_EQ(engine.stores.size(), 1U);
  preempt(engine.state, *engine.state.requests.find(request_id{1}), preemption_cause::reset, false);
  const auto pending = pending_of_preempted(engine.state);
  ASSERT_EQ(pending.size(), 1U);
  EXPECT_EQ(pending[0].id, engine.stores[0].id);
  EXPECT_EQ(pending[0].direction, transfer_direction::store);
  EXPECT_EQ(pending[0].request, request_id{1});
  EXPECT_TRUE(engine.run_step().admissions.empty());
  EXPECT_EQ(engine.request(1).reason, waiting_reason::transfers_pending);
  engine.settle_stores();
  EXPECT_EQ(engine.run_step().admissions.at(0).request, request_id{1});
}

// Guards: those who want what is being loaded join the load, in the same plan or later, with the same blocks.
TEST(plan_effects, requests_join_a_load) {
  scheduler_fixture engine({.num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 12));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(0, 9));
  engine.submit(3, tokens_from(0, 13));
  const auto plan = engine.plan();
  ASSERT_EQ(plan.admissions.size(), 2U);
  EXPECT_EQ(unit::values(plan.admissions[0].load->parts.at(0).blocks), (blocks{4, 5}));
  EXPECT_EQ(unit::values(plan.admissions[1].tables.at(0).shared), (blocks{4, 5}));
  EXPECT_EQ(plan.admissions[1].joined_loads, std::vector<transfer_id>{plan.admissions[0].load->id});
  EXPECT_EQ(unit::values(plan.admissions[1].load->parts.at(0).blocks), (blocks{6}));
  engine.run(plan);
  engine.submit(4, tokens_from(0, 9));
  const auto later = engine.run_step();
  EXPECT_EQ(unit::values(later.admissions.at(0).tables.at(0).shared), (blocks{4, 5}));
  EXPECT_EQ(engine.state.pool.num_references({4}), 4U);  // three waiters and the load itself
}

// Guards: the block in which a load's creator recomputes its last token is nobody else's.
TEST(plan_effects, nobody_joins_the_block_that_is_recomputed) {
  scheduler_fixture engine({.num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(0, 8));
  engine.submit(3, tokens_from(0, 9));
  const auto plan = engine.plan();
  ASSERT_EQ(plan.admissions.size(), 2U);
  EXPECT_EQ(plan.admissions[0].num_computed_tokens, 7U);
  const auto& loaded = plan.admissions[0].load->parts.at(0).blocks;
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(plan.admissions[1].tables.at(0).shared, std::vector<block_id>{loaded[0]});
  ASSERT_TRUE(plan.admissions[1].load.has_value());
  EXPECT_EQ(plan.admissions[1].load->parts.at(0).first_block, 1U);
  EXPECT_NE(plan.admissions[1].load->parts.at(0).blocks.at(0), loaded[1]);
  const auto loads = engine.run(plan);
  EXPECT_EQ(engine.state.ledger.find(loads.at(0).id)->private_blocks, std::vector<std::size_t>{1});
  EXPECT_TRUE(engine.state.ledger.find(loads.at(1).id)->private_blocks.empty());
  engine.submit(4, tokens_from(0, 13));
  EXPECT_EQ(engine.plan().admissions.at(0).tables.at(0).shared,
            (std::vector<block_id>{loaded[0], plan.admissions[1].load->parts.at(0).blocks[0]}));
  engine.settle(transfer_direction::load, loads.at(0).id);
  EXPECT_TRUE(engine.state.pool.is_indexed(loaded[0]));
  EXPECT_FALSE(engine.state.pool.is_indexed(loaded[1]));
}

// Guards: of a full device hit the last block is computed again, and nothing is loaded in its place.
TEST(plan_effects, a_full_device_hit_leaves_its_last_block_to_compute) {
  scheduler_fixture engine({.num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.submit(2, tokens_from(0, 8));
  const auto plan = engine.run_step();
  EXPECT_EQ(unit::values(plan.admissions.at(0).tables.at(0).shared), (blocks{1}));
  EXPECT_FALSE(plan.admissions[0].is_loading());
  EXPECT_EQ(plan.admissions[0].num_computed_tokens, 4U);
  EXPECT_EQ(plan.entries.at(0).num_tokens, 4U);
}

// Guards: what the executor is told: tokens, tables and positions of each entry.
TEST(plan_effects, the_batch_follows_the_plan) {
  scheduler_fixture engine({.max_num_batched_tokens = 6});
  engine.submit(1, tokens_from(50, 5));
  engine.submit(2, tokens_from(70, 3));
  const auto plan = engine.plan();
  apply_plan(engine.state, plan);
  const auto batch = make_batch(engine.state, plan);
  EXPECT_EQ(batch.step, step_id{1});
  ASSERT_EQ(batch.entries.size(), 2U);
  EXPECT_EQ(batch.entries[0].tokens, tokens_from(50, 5));
  EXPECT_TRUE(batch.entries[0].samples);
  EXPECT_EQ(unit::values(batch.entries[0].block_tables.at(0)), (blocks{1, 2}));
  EXPECT_EQ(batch.entries[1].tokens, tokens_from(70, 1));
  EXPECT_FALSE(batch.entries[1].samples);
  EXPECT_EQ(batch.entries[1].first_position, 0U);
}

/// Plans, applies, withdraws; the state is whole again and the next plan does the same.
void expect_withdrawable(scheduler_fixture& engine) {
  const auto order = unit::free_list(engine.state.pool);
  const auto plan = engine.plan();
  apply_plan(engine.state, plan);
  withdraw_plan(engine.state, plan);
  EXPECT_EQ(check_integrity(engine.state), faults{});
  EXPECT_EQ(unit::free_list(engine.state.pool), order);
  const auto again = engine.plan();
  EXPECT_EQ(again.step.value, plan.step.value + 1);
  EXPECT_EQ(to_text(again), to_text(plan));
  EXPECT_FALSE(again.is_empty());
  engine.run(again);
}

// Guards: entries of running and admitted requests are undone, blocks in their old order.
TEST(plan_effects, withdraws_entries_and_admissions) {
  scheduler_fixture engine({.max_num_batched_tokens = 20});
  engine.submit(1, tokens_from(0, 4));
  engine.run_step();
  engine.submit(2, tokens_from(1000, 9));
  engine.submit(3, tokens_from(2000, 30));
  expect_withdrawable(engine);
  EXPECT_EQ(engine.request(2).attempt, attempt_id{1});
  EXPECT_EQ(engine.request(3).num_computed_tokens, 10U);
}

// Guards: loads, pins and joins are undone; the ids of withdrawn loads are never used again.
TEST(plan_effects, withdraws_loads_and_joins) {
  scheduler_fixture engine({.num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 12));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(0, 9));
  engine.submit(3, tokens_from(0, 13));
  const auto plan = engine.plan();
  EXPECT_EQ(apply_plan(engine.state, plan).size(), 2U);
  EXPECT_EQ(engine.state.tier->counts().pinned, 3U);
  withdraw_plan(engine.state, plan);
  EXPECT_EQ(engine.state.tier->counts(), (slot_counts{5, 0, 3, 0, 0}));
  EXPECT_TRUE(engine.state.ledger.records().empty());
  EXPECT_EQ(engine.state.pool.counts(), (block_counts{99, 0, 0, 0}));
  EXPECT_EQ(check_integrity(engine.state), faults{});
  const auto again = engine.plan();
  EXPECT_EQ(to_text(again), to_text(plan));
  EXPECT_GT(again.admissions[0].load->id, plan.admissions[1].load->id);
  engine.run(again);
}

// Guards: the joiner of an older load leaves it again; the load and its first waiter are untouched.
TEST(plan_effects, withdraws_the_join_of_an_older_load) {
  scheduler_fixture engine({.num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(0, 9));
  const auto loads = engine.run(engine.plan());
  engine.submit(3, tokens_from(0, 9));
  expect_withdrawable(engine);
  EXPECT_EQ(engine.state.ledger.find(loads.at(0).id)->waiters, (std::vector<request_id>{{2}, {3}}));
}

// Guards: a prefix hit is given back with its content.
TEST(plan_effects, withdraws_hits) {
  scheduler_fixture engine;
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.submit(2, tokens_from(0, 9));
  expect_withdrawable(engine);
  EXPECT_EQ(unit::values(engine.request(2).groups[0].table), (blocks{1, 2, 3}));
}

// Guards: preemptions, attempts and evictions of a withdrawn plan stand and are reported by the next one.
TEST(plan_effects, preemptions_stand_when_the_plan_is_withdrawn) {
  scheduler_fixture engine({.num_device_blocks = 3});
  engine.submit(1, tokens_from(0, 3));
  engine.submit(2, tokens_from(1000, 3));
  for (int i = 0; i < 2; ++i) engine.run_step();
  const auto plan = engine.plan();
  ASSERT_EQ(unit::values(plan.preempted), (ids{2}));
  apply_plan(engine.state, plan);
  withdraw_plan(engine.state, plan);
  EXPECT_EQ(check_integrity(engine.state), faults{});
  EXPECT_EQ(engine.request(2).phase, request_phase::waiting);
  EXPECT_EQ(engine.request(2).attempt, attempt_id{2});
  EXPECT_EQ(unit::values(engine.state.unreported_preemptions), (ids{2}));
  const auto again = engine.run_step();
  EXPECT_TRUE(again.preempted.empty());
  EXPECT_EQ(again.entries.at(0).request, request_id{1});
}

}  // namespace
}  // namespace sluice
