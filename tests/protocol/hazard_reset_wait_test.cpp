// SPDX-License-Identifier: Apache-2.0
//
// Resets that wait for loads.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

struct hazard_reset_wait : both_schedulings {
  hazard_reset_wait() {
    for (token_id first : {1, 61}) engine.warm_host(make_prompt(12, first));
    parked = engine.submit(make_prompt(12) + std::vector<token_id>{201, 202}, 8);
    engine.run();
    load = engine.loads().at(0);
  }

  static engine_options options() {
    auto options = sized(4, 1, 100);
    options.async_scheduling = GetParam();
    return options;
  }

  void post(bool reset_running_requests, bool reset_external = false) {
    engine.post(reset_prefix_cache{reset_running_requests, reset_external, true, 5s});
    engine.run();
  }
  bool is_answered() const { return engine.last_reset->has_value(); }
  const cache_reset_report& device() const { return (*engine.last_reset)->caches.at(0); }

  test_engine engine{options()};
  request_id parked;
  transfer_id load;
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_reset_wait);

// Section 8. Guards: a reset that may wait is answered when the load has settled, and successfully; the request that
// waited for the load counts as running then and is preempted.
TEST_P(hazard_reset_wait, succeeds_once_the_load_has_settled) {
  post(true);
  ASSERT_FALSE(is_answered());
  engine.system.advance(4s);
  engine.run();
  ASSERT_FALSE(is_answered());
  engine.complete(load);
  ASSERT_TRUE(is_answered());
  EXPECT_TRUE((*engine.last_reset)->success);
  EXPECT_TRUE(device().reset);
  EXPECT_EQ(engine.totals().preemptions_reset, 1U);
  engine.run_to_idle();
  engine.expect_reference(parked);
  EXPECT_EQ(engine.record(parked).summary->usage.num_preemptions, 1U);
  EXPECT_EQ(engine.totals().loads_ok, 2U);  // again, afterwards
  engine.system.advance(5s);
  engine.run();
  EXPECT_EQ(engine.totals().resets_device_refused, 0U);  // its timer means nothing any more
}

// Section 8, both caches. Guards: after the waiting reset nothing older is read.
TEST_P(hazard_reset_wait, nothing_older_is_reachable_afterwards) {
  post(true, true);
  ASSERT_FALSE(is_answered());
  ASSERT_TRUE(engine.device.complete_copies(load.value));
  ASSERT_TRUE(engine.system.run_until([&] { return engine.totals().resets_all_success == 1; }));
  engine.model.begin_epoch_after({engine.traffic().batches().back().step.value});
  engine.run_to_idle();
  EXPECT_TRUE((*engine.last_reset)->success);
  engine.expect_reference(parked);
  for (token_id first : {1, 61}) {
    const auto id = engine.complete_request(make_prompt(12, first) + std::vector<token_id>{211}, 2);
    engine.expect_reference(id);
  }
}

// Section 8. Guards: without the flag, whom the load was for holds the device once the load has settled: a truthful
// refusal; without that request the reset succeeds.
TEST_P(hazard_reset_wait, without_the_flag_the_waiter_decides) {
  post(false);
  engine.complete(load);
  ASSERT_TRUE(is_answered());
  EXPECT_FALSE((*engine.last_reset)->success);
  EXPECT_TRUE(device().held_by_loads.empty());
  EXPECT_EQ(device().held_by_running_requests, 1U);
  EXPECT_EQ(engine.totals().preemptions_reset, 0U);
  engine.run_to_idle();
  engine.expect_reference(parked);

  EXPECT_TRUE(engine.reset(false, false).success);
  const auto gone = engine.submit(make_prompt(12, 61) + std::vector<token_id>{201}, 8);
  engine.run();
  post(false);
  engine.abort(gone);
  engine.run();
  ASSERT_FALSE(is_answered());
  engine.complete(engine.loads().at(0));
  ASSERT_TRUE(is_answered());
  EXPECT_TRUE((*engine.last_reset)->success);
}

// Section 8. Guards: when the time is over the reset is refused and names the load; nobody was preempted, and the
// engine loads again.
TEST_P(hazard_reset_wait, is_refused_when_its_time_is_over) {
  const auto running = engine.submit(make_prompt(5, 121), 30);
  ASSERT_TRUE(engine.run_until_tokens(running, 8));
  engine.post(reset_prefix_cache{true, false, true, 5s});
  ASSERT_TRUE(engine.run_until_tokens(running, 12));
  engine.system.advance(5s);
  ASSERT_TRUE(engine.system.run_until([&] { return is_answered(); }));
  EXPECT_FALSE((*engine.last_reset)->success);
  EXPECT_EQ(device().held_by_loads, std::vector<transfer_id>{load});
  EXPECT_EQ(engine.totals().preemptions_reset, 0U);
  const auto later = engine.submit(make_prompt(12, 61) + std::vector<token_id>{201}, 2);
  engine.run();
  EXPECT_EQ(engine.loads().size(), 2U);
  engine.run_to_idle();
  for (auto id : {parked, running, later}) engine.expect_reference(id);
}

// Section 8. Guards: while a reset waits nothing new is loaded and no load is joined, and the snapshot says so; who
// needs no load is served.
TEST_P(hazard_reset_wait, nothing_is_loaded_meanwhile) {
  post(true);
  const auto joins = engine.submit(make_prompt(12) + std::vector<token_id>{203}, 3);
  const auto loads = engine.submit(make_prompt(12, 61) + std::vector<token_id>{204}, 3);
  const auto computes = engine.submit(make_prompt(6, 121), 3);
  engine.run();
  EXPECT_TRUE(engine.has_ended(computes));
  for (auto id : {joins, loads}) {
    EXPECT_EQ(engine.request(id)->phase, request_phase::waiting);
    EXPECT_EQ(engine.request(id)->reason, waiting_reason::loads_held);
  }
  EXPECT_EQ(engine.loads(), std::vector<transfer_id>{load});
  engine.complete(load);
  ASSERT_TRUE(is_answered());
  EXPECT_TRUE((*engine.last_reset)->success);
  engine.run_to_idle();
  for (auto id : {parked, joins, loads}) {
    engine.expect_reference(id);
    EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 12U);
  }
}

// Section 8. Guards: two resets that wait are both answered; one that may not wait is refused at once beside them.
TEST_P(hazard_reset_wait, each_of_several_resets_is_answered) {
  post(true);
  const auto first = engine.last_reset;
  post(true, true);
  const auto second = engine.last_reset;
  EXPECT_FALSE(engine.reset(true, false).success);
  EXPECT_FALSE(first->has_value());
  EXPECT_FALSE(second->has_value());
  engine.complete(load);
  ASSERT_TRUE(first->has_value());
  ASSERT_TRUE(second->has_value());
  EXPECT_TRUE((*first)->success);
  EXPECT_TRUE((*second)->success);
  EXPECT_EQ(engine.totals().preemptions_reset, 1U);
  engine.run_to_idle();
  engine.expect_reference(parked);
}

}  // namespace
}  // namespace sluice::testing
