// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/request_table.hpp>

#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

using ids = std::vector<std::uint64_t>;
using enum request_event;

request_record& add(request_table& table, std::uint64_t id) {
  request_params params;
  params.id = {id};
  params.prompt = {1, 2, 3};
  params.max_tokens = 5;
  return table.add(std::move(params), 2);
}

void apply(request_table& table, std::uint64_t id, request_event event) {
  table.apply(*table.find(request_id{id}), event);
}

ids waiting(const request_table& table) {
  ids found;
  table.for_each_waiting([&](const request_record& request) { return found.push_back(request.params.id.value), true; });
  return found;
}

ids active(const request_table& table) {
  ids found;
  for (const auto* request : table.active()) found.push_back(request->params.id.value);
  return found;
}

// Guards: what a submitted request starts from.
TEST(request_table, a_new_request_waits_in_its_first_attempt) {
  request_table table{scheduling_policy::fcfs};
  const auto& request = add(table, 7);
  EXPECT_EQ(request.phase, request_phase::waiting);
  EXPECT_EQ(request.reason, waiting_reason::queued);
  EXPECT_EQ(request.attempt, attempt_id{1});
  EXPECT_EQ(request.arrival, 1U);
  EXPECT_EQ(request.tokens, (std::vector<token_id>{1, 2, 3}));
  EXPECT_EQ(request.num_prompt_tokens(), 3U);
  EXPECT_EQ(request.num_output_tokens(), 0U);
  EXPECT_EQ(request.usage.num_prompt_tokens, 3U);
  EXPECT_EQ(request.groups.size(), 2U);
  EXPECT_EQ(table.size(), 1U);
}

// Guards: first come, first served, by arrival and not by id.
TEST(request_table, new_requests_wait_in_arrival_order) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {9U, 4U, 6U}) add(table, id);
  EXPECT_EQ(waiting(table), (ids{9, 4, 6}));
  EXPECT_EQ(table.num_waiting(), 3U);
}

// Guards: active requests stand oldest first, whatever the order of their admission.
TEST(request_table, active_requests_stand_oldest_first) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {9U, 4U, 6U}) add(table, id);
  apply(table, 6, admit_running);
  apply(table, 9, admit_loading);
  apply(table, 4, admit_running);
  EXPECT_EQ(active(table), (ids{9, 4, 6}));
  EXPECT_EQ(table.num_active(), 3U);
  EXPECT_TRUE(waiting(table).empty());
  apply(table, 9, start);
  EXPECT_EQ(active(table), (ids{9, 4, 6}));
}

// Guards: preempted requests are admitted first, in arrival order and not in the order of preemption.
TEST(request_table, preempted_requests_stand_at_the_front_in_arrival_order) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {1U, 2U, 3U, 4U}) add(table, id);
  for (const auto id : {1U, 2U, 3U}) apply(table, id, admit_running);
  apply(table, 3, preempt);
  apply(table, 1, preempt);
  apply(table, 2, preempt);
  EXPECT_EQ(waiting(table), (ids{1, 2, 3, 4}));
  add(table, 5);
  EXPECT_EQ(waiting(table), (ids{1, 2, 3, 4, 5}));
}

// Guards: a younger preempted request stands before an older one that never ran.
TEST(request_table, a_preempted_request_overtakes_one_that_never_ran) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {1U, 2U}) add(table, id);
  apply(table, 2, admit_running);
  apply(table, 2, preempt);
  EXPECT_EQ(waiting(table), (ids{2, 1}));
}

// Guards: results of an older attempt are told apart; a withdrawn admission is no attempt.
TEST(request_table, attempts_grow_with_preemptions_and_lost_loads_only) {
  request_table table{scheduling_policy::fcfs};
  auto& request = add(table, 1);
  apply(table, 1, admit_running);
  apply(table, 1, withdraw);
  EXPECT_EQ(request.attempt, attempt_id{1});
  apply(table, 1, admit_loading);
  apply(table, 1, lose_load);
  EXPECT_EQ(request.attempt, attempt_id{2});
  apply(table, 1, admit_running);
  apply(table, 1, preempt);
  EXPECT_EQ(request.attempt, attempt_id{3});
}

// Guards: a request whose plan was withdrawn takes its old place.
TEST(request_table, a_withdrawn_request_takes_its_old_place) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {1U, 2U, 3U}) add(table, id);
  apply(table, 2, admit_running);
  apply(table, 2, withdraw);
  EXPECT_EQ(waiting(table), (ids{1, 2, 3}));
}

// Guards: the snapshot's reason follows the phase.
TEST(request_table, the_reason_follows_the_phase) {
  request_table table{scheduling_policy::fcfs};
  auto& request = add(table, 1);
  apply(table, 1, admit_loading);
  EXPECT_EQ(request.reason, waiting_reason::load_in_flight);
  apply(table, 1, start);
  EXPECT_EQ(request.reason, waiting_reason::none);
  apply(table, 1, preempt);
  EXPECT_EQ(request.reason, waiting_reason::queued);
}

// Guards: loading requests are counted apart from running ones.
TEST(request_table, counts_loading_requests) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {1U, 2U, 3U}) add(table, id);
  apply(table, 1, admit_loading);
  apply(table, 2, admit_loading);
  apply(table, 3, admit_running);
  EXPECT_EQ(table.num_loading(), 2U);
  apply(table, 1, start);
  apply(table, 2, lose_load);
  EXPECT_EQ(table.num_loading(), 0U);
}

// Guards: the scan of waiting requests ends where the planner says so.
TEST(request_table, the_scan_ends_when_told) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {1U, 2U, 3U}) add(table, id);
  ids seen;
  table.for_each_waiting([&](const request_record& request) {
    seen.push_back(request.params.id.value);
    return seen.size() < 2;
  });
  EXPECT_EQ(seen, (ids{1, 2}));
}

// Guards: a request can end in every phase, and leaves every queue.
TEST(request_table, finished_requests_leave_nothing) {
  request_table table{scheduling_policy::fcfs};
  for (const auto id : {1U, 2U, 3U}) add(table, id);
  apply(table, 2, admit_loading);
  apply(table, 3, admit_running);
  for (const auto id : {1U, 2U, 3U}) {
    apply(table, id, finish);
    EXPECT_EQ(table.remove({id}).params.id, request_id{id});
    EXPECT_EQ(table.find(request_id{id}), nullptr);
  }
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.num_active(), 0U);
  EXPECT_EQ(table.num_waiting(), 0U);
}

}  // namespace
}  // namespace sluice
