// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/step_planner.hpp>

#include <gtest/gtest.h>

#include "scheduler_fixture.hpp"

namespace sluice {
namespace {

using unit::scheduler_fixture;
using unit::to_text;
using unit::tokens_from;
using ids = std::vector<std::uint64_t>;
using blocks = std::vector<std::uint32_t>;

std::string fingerprint(const scheduler_state& state) {
  std::string text = ::testing::PrintToString(unit::free_list(state.pool));
  for (const auto& [id, request] : state.requests.all())
    text += " " + std::to_string(id.value) + ":" + std::to_string(static_cast<int>(request.phase)) +
            std::to_string(static_cast<int>(request.reason)) + "," + std::to_string(request.num_dispatched_tokens) +
            ::testing::PrintToString(unit::values(request.groups[0].table));
  text += ::testing::PrintToString(unit::values(state.ledger.ids(transfer_direction::load)));
  return text + " " + std::to_string(state.totals.device_evictions) + " " + std::to_string(state.last_step.value);
}

// Guards: an empty engine has nothing to do.
TEST(step_planner, nothing_to_do) {
  const scheduler_fixture engine;
  const auto plan = engine.plan();
  EXPECT_TRUE(plan.is_empty());
  EXPECT_EQ(plan.step, step_id{1});
}

// Guards: planning is pure: twice the same, and nothing has changed.
TEST(step_planner, planning_changes_nothing) {
  scheduler_fixture engine({.num_device_blocks = 8, .num_host_slots = 8, .max_num_batched_tokens = 10});
  engine.compute_and_end(1, tokens_from(0, 12));
  engine.submit(2, tokens_from(0, 13));
  engine.submit(3, tokens_from(1000, 9));
  engine.run_step();
  engine.submit(4, tokens_from(0, 9));
  const auto before = fingerprint(engine.state);
  const auto first = to_text(engine.plan());
  EXPECT_EQ(to_text(engine.plan()), first);
  EXPECT_EQ(fingerprint(engine.state), before);
  EXPECT_FALSE(first.empty());
}

// Guards: computed tokens stay within the budget; a long prompt is prefilled in chunks and samples with its last one.
TEST(step_planner, chunked_prefill_within_the_budget) {
  scheduler_fixture engine({.max_num_batched_tokens = 10});
  engine.submit(1, tokens_from(0, 8));
  engine.submit(2, tokens_from(1000, 9));
  engine.submit(3, tokens_from(2000, 5));
  EXPECT_EQ(to_text(engine.run_step()),
            " admission 1 shared [ ] computed 0\n"
            " admission 2 shared [ ] computed 0\n"
            " entry 1 0 8 samples blocks [ 1 2 ]\n"
            " entry 2 0 2 blocks [ 3 ]\n");
  EXPECT_EQ(to_text(engine.run_step()),
            " admission 3 shared [ ] computed 0\n"
            " entry 1 8 1 samples blocks [ 4 ]\n"
            " entry 2 2 7 samples blocks [ 5 6 ]\n"
            " entry 3 0 2 blocks [ 7 ]\n");
}

// Guards: running requests come before waiting ones.
TEST(step_planner, running_requests_use_the_budget_first) {
  scheduler_fixture engine({.max_num_batched_tokens = 4});
  engine.submit(1, tokens_from(0, 8));
  engine.submit(2, tokens_from(1000, 2));
  engine.run_step();
  const auto plan = engine.run_step();
  EXPECT_TRUE(plan.admissions.empty());
  ASSERT_EQ(plan.entries.size(), 1U);
  EXPECT_EQ(plan.entries[0].first_position, 4U);
  EXPECT_EQ(plan.entries[0].num_tokens, 4U);
}

// Guards: running and loading requests together stay within max_num_seqs.
TEST(step_planner, max_num_seqs_counts_running_and_loading) {
  scheduler_fixture engine({.num_host_slots = 8, .max_num_seqs = 2});
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(0, 9));
  for (std::uint64_t id = 3; id <= 5; ++id) engine.submit(id, tokens_from(static_cast<token_id>(id) * 1000, 4));
  const auto plan = engine.run_step();
  ASSERT_EQ(plan.admissions.size(), 2U);
  EXPECT_TRUE(plan.admissions[0].is_loading());
  EXPECT_EQ(plan.admissions[1].request, request_id{3});
  EXPECT_TRUE(engine.run_step().admissions.empty());
  engine.abort(3);
  EXPECT_EQ(engine.run_step().admissions[0].request, request_id{4});
}

// Guards: loads use none of the budget.
TEST(step_planner, loaded_tokens_are_not_budgeted) {
  scheduler_fixture engine({.num_host_slots = 8, .max_num_batched_tokens = 8});
  engine.compute_and_end(1, tokens_from(0, 16));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(1000, 8));
  engine.submit(3, tokens_from(0, 17));
  const auto plan = engine.run_step();
  ASSERT_EQ(plan.admissions.size(), 2U);
  ASSERT_TRUE(plan.admissions[1].load.has_value());
  EXPECT_EQ(plan.admissions[1].num_computed_tokens, 16U);
  EXPECT_EQ(plan.entries.size(), 1U);
}

/// Three requests of 4 tokens fill the pool's three blocks; each needs a second block now.
struct full_pool : scheduler_fixture {
  full_pool() : scheduler_fixture({.num_device_blocks = 4}) {
    for (std::uint64_t id = 1; id <= 3; ++id) submit(id, tokens_from(static_cast<token_id>(id) * 1000, 3));
    run_step();
    run_step();
  }
};

// Guards: the youngest gives way first, the oldest gets blocks, and a plan that preempts admits nobody.
TEST(step_planner, victims_are_the_youngest) {
  full_pool engine;
  engine.submit(4, tokens_from(9000, 1));
  EXPECT_EQ(engine.state.pool.num_allocatable(), 0U);
  const auto plan = engine.run_step();
  EXPECT_EQ(unit::values(plan.preempted), (ids{3}));
  EXPECT_TRUE(plan.admissions.empty());
  ASSERT_EQ(plan.entries.size(), 1U);
  EXPECT_EQ(plan.entries[0].request, request_id{1});
  EXPECT_EQ(unit::values(plan.entries[0].new_blocks[0]), (blocks{3}));
  EXPECT_EQ(engine.request(3).phase, request_phase::waiting);
  EXPECT_EQ(engine.request(3).attempt, attempt_id{2});
  EXPECT_EQ(engine.request(2).phase, request_phase::running);
  EXPECT_EQ(engine.state.totals.preemptions_capacity, 1U);
}

// Guards: several victims go, youngest first, until the oldest fits.
TEST(step_planner, preempts_until_the_oldest_fits) {
  scheduler_fixture engine({.num_device_blocks = 7, .max_num_batched_tokens = 8});
  engine.submit(1, tokens_from(0, 20));
  engine.submit(2, tokens_from(1000, 4));
  EXPECT_EQ(engine.run_step().entries[0].num_tokens, 8U);
  EXPECT_EQ(engine.run_step().entries[0].num_tokens, 8U);
  engine.run_step();
  engine.submit(3, tokens_from(2000, 3));
  engine.run_step();
  EXPECT_EQ(engine.request(2).phase, request_phase::waiting);
  EXPECT_EQ(engine.request(3).phase, request_phase::waiting);
}

// Guards: a victim that had its place in the plan already loses it, with its blocks and its share of the budget.
TEST(step_planner, a_running_victim_of_an_older_loaded_request_loses_its_entry) {
  scheduler_fixture engine({.num_device_blocks = 6, .num_host_slots = 8, .max_num_batched_tokens = 2});
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(0, 9));
  engine.submit(3, tokens_from(0, 9));  // joins the load of 2
  engine.submit(4, tokens_from(1000, 3));
  const auto loads = engine.run(engine.plan());
  ASSERT_EQ(loads.size(), 1U);
  while (engine.request(4).num_computed_tokens < 8) engine.run_step();
  ASSERT_EQ(engine.stores.size(), 2U);
  EXPECT_EQ(engine.state.pool.num_allocatable(), 1U);
  engine.settle(transfer_direction::load, loads[0].id);
  const auto taken_first = engine.state.pool.first_allocatable(), second_of_4 = engine.request(4).groups[0].table[1];
  const auto plan = engine.plan();  // 4 runs and comes first, but 2 and 3 are older
  EXPECT_EQ(unit::values(plan.preempted), (ids{4}));
  ASSERT_EQ(plan.entries.size(), 2U);
  EXPECT_EQ(plan.entries[0].request, request_id{2});
  EXPECT_EQ(plan.entries[0].new_blocks[0], std::vector<block_id>{taken_first});
  EXPECT_EQ(plan.entries[1].request, request_id{3});
  EXPECT_EQ(plan.entries[1].new_blocks[0], std::vector<block_id>{second_of_4});
  EXPECT_EQ(plan.reused_stores, std::vector<transfer_id>{engine.stores[1].id});
  engine.run(plan);
}

// Guards: what is preempted by a plan comes back with a later one.
TEST(step_planner, a_victim_is_admitted_again_before_new_requests) {
  full_pool engine;
  engine.submit(4, tokens_from(9000, 1));
  engine.run_step();
  engine.abort(1);
  const auto plan = engine.run_step();
  EXPECT_TRUE(plan.preempted.empty());
  ASSERT_EQ(plan.admissions.size(), 0U);  // 3 needs two blocks, 2 has taken one of two
  EXPECT_EQ(engine.request(3).reason, waiting_reason::no_blocks);
  EXPECT_EQ(engine.request(4).reason, waiting_reason::queued);
  engine.abort(2);
  EXPECT_EQ(engine.run_step().admissions[0].request, request_id{3});
}

// Guards: with nothing running the scan goes on past a head that does not fit; a running request ends it.
TEST(step_planner, scan_goes_on_past_a_head_that_does_not_fit) {
  for (const bool is_running : {false, true}) {
    scheduler_fixture engine({.num_device_blocks = 6, .num_host_slots = 8});
    engine.compute_and_end(1, tokens_from(0, 8));
    engine.state.pool.forget_all();
    engine.submit(2, tokens_from(0, 8));  // its load holds two of five blocks
    engine.run_step();
    if (is_running) {
      engine.submit(3, tokens_from(1000, 2));
      engine.run_step();
    }
    engine.submit(4, tokens_from(2000, 16));
    engine.submit(5, tokens_from(3000, 4));
    const auto plan = engine.run_step();
    EXPECT_EQ(engine.request(4).reason, waiting_reason::no_blocks);
    EXPECT_EQ(plan.admissions.size(), is_running ? 0U : 1U);
    EXPECT_EQ(engine.request(5).phase, is_running ? request_phase::waiting : request_phase::running);
  }
}

// Guards: a request is admitted only beside what active requests still need for tokens they know.
TEST(step_planner, admission_leaves_room_for_prompts_in_progress) {
  scheduler_fixture engine({.num_device_blocks = 6, .num_host_slots = 8});
  engine.compute_and_end(1, tokens_from(0, 8));
  engine.state.pool.forget_all();
  engine.submit(2, tokens_from(0, 16));  // loads two of five blocks, needs two more once they are there
  engine.run_step();
  EXPECT_EQ(engine.state.pool.num_allocatable(), 3U);
  engine.submit(3, tokens_from(1000, 8));
  engine.submit(4, tokens_from(2000, 4));
  engine.run_step();
  EXPECT_EQ(engine.request(3).reason, waiting_reason::no_blocks);
  EXPECT_EQ(engine.request(4).phase, request_phase::running);
}

// Guards: a request that cannot fit beside quarantined blocks ends with an error; others go on.
TEST(step_planner, what_can_never_fit_fails) {
  scheduler_fixture engine({.num_device_blocks = 5});
  engine.state.pool.quarantine({4});
  engine.submit(1, tokens_from(0, 16));
  engine.submit(2, tokens_from(1000, 12));
  const auto plan = engine.run_step();
  ASSERT_EQ(plan.failures.size(), 1U);
  EXPECT_EQ(plan.failures[0].request, request_id{1});
  EXPECT_EQ(plan.failures[0].code, errc::out_of_blocks);
  EXPECT_EQ(engine.request(2).phase, request_phase::running);
  engine.abort(2);
  engine.state.pool.unquarantine({4});
}

}  // namespace
}  // namespace sluice
