// SPDX-License-Identifier: Apache-2.0
//
// Hazards of pausing: commands that meet a pause which has not ended.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

struct hazard_pause_control : both_schedulings {
  hazard_pause_control() {
    engine.warm_host(make_prompt(12));
    l = engine.submit(make_prompt(12) + std::vector<token_id>{201, 202}, 6);
    engine.run();
    load = engine.loads().at(0);
    r = engine.submit(make_prompt(9, 101), 12);
    EXPECT_TRUE(engine.run_until_tokens(r, 11));
  }

  static engine_options options() {
    auto options = sized(4, 1, 100);
    options.async_scheduling = GetParam();
    return options;
  }

  /// The answer, once it has come, to a command that was posted now.
  template <class Command>
  auto post(Command command) {
    engine.post(command);
    const auto answer = engine.last_control;
    engine.run();
    return answer;
  }
  auto post_pause(pause_mode mode = pause_mode::keep, bool clears = false) {
    return post(pause_engine{mode, clears, clears, 60s});
  }

  void finish(std::initializer_list<request_id> ids) {
    engine.run_to_idle();
    for (auto id : ids) engine.expect_reference(id);
  }

  test_engine engine{options()};
  request_id l, r;
  transfer_id load;
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_pause_control);

// Section 8. Guards: a second pause takes the first one's place, which is answered as cancelled; each is answered once.
TEST_P(hazard_pause_control, a_second_pause_cancels_the_first) {
  const auto first = post_pause(pause_mode::wait), second = post_pause(pause_mode::keep);
  ASSERT_TRUE(first->has_value());
  EXPECT_EQ((*first)->outcome, control_outcome::cancelled);
  EXPECT_FALSE(second->has_value());
  engine.complete(load);
  ASSERT_TRUE(second->has_value());
  EXPECT_EQ((*second)->outcome, control_outcome::done);
  EXPECT_EQ(engine.request(l)->phase, request_phase::loading);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  finish({l, r});
}

// Section 8. Guards: a resume cancels an unfinished pause, which then clears nothing later.
TEST_P(hazard_pause_control, a_resume_cancels_an_unfinished_pause) {
  const auto pause = post_pause(pause_mode::keep, true);
  EXPECT_FALSE(pause->has_value());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  ASSERT_TRUE(pause->has_value());
  EXPECT_EQ((*pause)->outcome, control_outcome::cancelled);
  EXPECT_TRUE((*pause)->caches.empty());
  EXPECT_EQ(engine.control(), control_state::running);
  engine.complete(load);
  EXPECT_EQ(engine.totals().preemptions_pause, 0U);
  EXPECT_EQ(engine.totals().loads_ok, 1U);
  finish({l, r});
  EXPECT_GT(engine.snapshot().slots.ready, 3U);
  engine.system.advance(60s);  // its timer means nothing any more
  engine.run();
  EXPECT_EQ(engine.control(), control_state::running);
}

// Section 8. Guards: a pause that waits for running requests says in time how many there are.
TEST_P(hazard_pause_control, a_timeout_names_the_requests_that_still_run) {
  auto held = options();
  held.holds_compute = true;
  test_engine busy(std::move(held));
  for (const token_id start : {1, 101}) busy.submit(make_prompt(8, start), 40);
  const auto compute = [&](int num_operations) {
    busy.run();
    for (int i = 0; i < num_operations && busy.device.step("compute"); ++i) busy.run();
  };
  compute(4);
  busy.post(pause_engine{pause_mode::wait, false, false, 5s});
  compute(4);
  EXPECT_FALSE(busy.last_control->has_value());
  busy.system.advance(5s);
  compute(4);  // commands take effect between steps
  ASSERT_TRUE(busy.last_control->has_value());
  EXPECT_EQ((*busy.last_control)->outcome, control_outcome::timed_out);
  EXPECT_EQ((*busy.last_control)->caches.at(0).held_by_running_requests, 2U);
  busy.run_to_idle();
  EXPECT_EQ(busy.control(), control_state::paused);
  busy.carry_out(resume_engine{});
  finish({l, r});
}

// Section 8. Guards: a pause that loads hold answers in time, names them, and the engine comes to rest all the same
// without clearing anything.
TEST_P(hazard_pause_control, a_timeout_names_the_loads_that_hold_the_device) {
  engine.post(pause_engine{pause_mode::keep, true, true, 5s});
  engine.run();
  EXPECT_FALSE(engine.last_control->has_value());
  engine.system.advance(5s);
  engine.run();
  ASSERT_TRUE(engine.last_control->has_value());
  const auto report = **engine.last_control;
  EXPECT_EQ(report.outcome, control_outcome::timed_out);
  ASSERT_EQ(report.caches.size(), 1U);
  EXPECT_EQ(report.caches[0].cache, "device");
  EXPECT_FALSE(report.caches[0].reset);
  EXPECT_EQ(report.caches[0].held_by_loads, std::vector<transfer_id>{load});
  EXPECT_EQ(engine.control(), control_state::pausing);
  const auto steps = engine.totals().steps;
  engine.complete(load);
  EXPECT_EQ(engine.control(), control_state::paused);
  EXPECT_EQ(engine.totals().steps, steps);
  EXPECT_GT(engine.snapshot().blocks.held, 0U);
  EXPECT_GE(engine.snapshot().slots.ready, 3U);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  finish({l, r});
}

// Section 8: a pause holds no later command. Guards: during a pause, finished or not, requests come, go, and caches are
// reset with a truthful answer.
TEST_P(hazard_pause_control, commands_during_a_pause_are_carried_out) {
  for (const bool is_finished : {false, true}) {
    if (is_finished) engine.complete(load);
    if (!is_finished) post_pause();
    const auto gone = engine.submit(make_prompt(5, 51), 4);
    engine.run();
    EXPECT_EQ(engine.request(gone)->phase, request_phase::waiting);
    engine.abort(gone);
    engine.run();
    ASSERT_TRUE(engine.has_ended(gone));
    EXPECT_EQ(engine.record(gone).summary->reason, finish_reason::abort);
    const auto report = engine.reset(false, false);
    EXPECT_FALSE(report.success);
    EXPECT_EQ(report.caches.at(0).held_by_loads.size(), is_finished ? 0U : 1U);
    EXPECT_EQ(report.caches.at(0).held_by_running_requests, is_finished ? 2U : 1U);
  }
  ASSERT_TRUE(engine.last_control->has_value());
  EXPECT_TRUE(engine.reset(true, true).success);
  EXPECT_EQ(engine.totals().preemptions_reset, 2U);
  EXPECT_EQ(engine.snapshot().blocks.free, 99U);
  engine.model.begin_epoch_after(engine.snapshot().last_step);
  EXPECT_EQ(engine.control(), control_state::paused);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  finish({l, r});
}

// Section 8. Guards: requests that are aborted while a pause waits for their load end at once; the load still holds the
// pause, and its blocks come back with it.
TEST_P(hazard_pause_control, an_abort_does_not_end_the_load_that_holds_a_pause) {
  const auto pause = post_pause();
  engine.abort(l);
  engine.abort(r);
  engine.run();
  EXPECT_TRUE(engine.has_ended(l));
  EXPECT_TRUE(engine.has_ended(r));
  EXPECT_FALSE(pause->has_value());
  EXPECT_EQ(engine.snapshot().blocks.held, 3U);
  engine.complete(load);
  ASSERT_TRUE(pause->has_value());
  EXPECT_EQ((*pause)->outcome, control_outcome::done);
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
}

// Section 8. Guards: a load that fails during a pause ends it as well as one that succeeds; the request recomputes
// after the resume.
TEST_P(hazard_pause_control, a_load_that_fails_ends_the_wait_of_a_pause) {
  const auto pause = post_pause();
  engine.fail(load, 1);
  ASSERT_TRUE(pause->has_value());
  EXPECT_EQ((*pause)->outcome, control_outcome::done);
  EXPECT_EQ(engine.request(l)->phase, request_phase::waiting);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  finish({l, r});
  EXPECT_EQ(engine.traffic().entries_of(l).at(0).first_position, 4U);
}

// Section 8. Guards: after a pause that kept requests, one that waits for them lets them end; those that never ran stay.
TEST_P(hazard_pause_control, a_waiting_pause_after_a_keeping_one_lets_requests_end) {
  post_pause();
  engine.complete(load);
  ASSERT_EQ(engine.control(), control_state::paused);
  const auto later = engine.submit(make_prompt(6, 51), 3);
  const auto waiting = post_pause(pause_mode::wait);
  ASSERT_TRUE(waiting->has_value());
  EXPECT_EQ((*waiting)->outcome, control_outcome::done);
  for (auto id : {l, r}) engine.expect_reference(id);
  EXPECT_EQ(engine.request(later)->phase, request_phase::waiting);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  finish({later});
}

// Section 8. Guards: a reset of the tiers alone succeeds under a pause and with a load in flight, which is stale then.
TEST_P(hazard_pause_control, the_tiers_alone_are_reset_under_a_load) {
  const auto pause = post_pause();
  engine.post(reset_prefix_cache{false, true, false, {}});
  engine.run();
  ASSERT_TRUE(engine.last_reset->has_value());
  EXPECT_TRUE((*engine.last_reset)->success);
  ASSERT_EQ((*engine.last_reset)->caches.size(), 1U);
  EXPECT_NE((*engine.last_reset)->caches[0].cache, "device");
  EXPECT_EQ(engine.totals().resets_tiers_success, 1U);
  engine.complete(load);
  ASSERT_TRUE(pause->has_value());
  EXPECT_EQ(engine.totals().loads_stale, 1U);
  EXPECT_EQ(engine.request(l)->phase, request_phase::waiting);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  finish({l, r});
  EXPECT_EQ(engine.traffic().entries_of(l).at(0).first_position, 0U);
}

}  // namespace
}  // namespace sluice::testing
