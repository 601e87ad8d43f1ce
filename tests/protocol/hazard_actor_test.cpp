// SPDX-License-Identifier: Apache-2.0
//
// Load and store actors that end at any message: their successors adopt what is doubtful, and no client notices.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

/// A day in which the load and the store actor get every kind of message: A and B share nothing; A has stores in
/// flight, B's chunks are in the host tier when a reset preempts both, so that the next boundary flushes A's stores
/// while it loads for B.
struct hazard_actor : both_schedulings {
  static engine_options options() {
    auto options = sized(8, 1, 100);
    options.async_scheduling = GetParam();
    options.is_supervised = true;
    return options;
  }

  test_engine engine{options()};
  request_id a, b;

  void begin() {
    engine.warm_host(make_prompt(8, 101));
    b = engine.submit(make_prompt(8, 101) + std::vector<token_id>{201}, 16);
    engine.run();
    ASSERT_EQ(engine.loads().size(), 1U);
  }

  /// From here on copies are held.
  void preempt() {
    EXPECT_TRUE(engine.device.complete_copies(engine.loads().at(0).value));
    a = engine.submit(make_prompt(24), 8);
    ASSERT_TRUE(engine.run_until_tokens(a, 25));
    ASSERT_FALSE(engine.stores().empty());
    engine.post_reset(true, false);
  }

  /// The actor ends before it handles its next message, which must be a Msg.
  template <class Msg, class Handle>
  void kill_at(const Handle& actor) {
    ASSERT_TRUE(engine.system.run_until([&] { return engine.system.peek<Msg>(actor).has_value(); }))
        << engine.system.describe_next(actor);
    engine.system.kill(actor);
  }

  void expect_all_is_well(std::size_t num_restarts) {
    engine.run_past_pauses();
    EXPECT_EQ(engine.restarts.size(), num_restarts);
    EXPECT_TRUE(engine.failures.empty());
    const auto totals = engine.totals();
    EXPECT_EQ(totals.load_actor_restarts + totals.store_actor_restarts, num_restarts);
    for (const auto& [id, record] : engine.records) engine.expect_reference(id);
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_actor);

// Guards: a load that was never submitted counts as failed; its request computes.
TEST_P(hazard_actor, load_actor_ends_at_submit_loads) {
  engine.warm_host(make_prompt(8, 101));
  b = engine.submit(make_prompt(8, 101) + std::vector<token_id>{201}, 16);
  kill_at<submit_loads>(engine.loader);
  expect_all_is_well(1);
  EXPECT_EQ(engine.totals().loads_failed, 1U);
  EXPECT_EQ(engine.snapshot().slots.ready, 3U) << "nothing is wrong with what the tier has";
}

// Guards: the targets of a load whose end nobody heard of stay held until its stream has passed it.
TEST_P(hazard_actor, load_actor_ends_with_a_load_on_its_stream) {
  begin();
  const auto load = engine.loads().at(0);
  engine.system.kill(engine.loader);
  engine.run();
  EXPECT_EQ(engine.restarts.size(), 1U);
  EXPECT_EQ(engine.loads(), std::vector<transfer_id>{load});
  EXPECT_FALSE(engine.reset(true, false).success);
  engine.complete(load);
  EXPECT_TRUE(engine.device.step("load"));  // the successor's mark
  engine.run();
  EXPECT_TRUE(engine.loads().empty());
  expect_all_is_well(1);
}

TEST_P(hazard_actor, load_actor_ends_at_copies_ended) {
  begin();
  EXPECT_TRUE(engine.device.complete_copies(engine.loads().at(0).value));
  kill_at<copies_ended>(engine.loader);
  expect_all_is_well(1);
}

TEST_P(hazard_actor, load_actor_ends_at_stage_loads) {
  begin();
  preempt();
  kill_at<stage_loads>(engine.loader);
  expect_all_is_well(1);
  EXPECT_GE(engine.totals().withdrawn_plans, 1U);
}

TEST_P(hazard_actor, load_actor_ends_at_current_step_loads) {
  begin();
  preempt();
  kill_at<current_step_loads>(engine.loader);
  expect_all_is_well(1);
  EXPECT_GE(engine.totals().withdrawn_plans, 1U);
}

// Guards: loads that were staged with the actor that ended are submitted to its successor when the boundary is cleared.
TEST_P(hazard_actor, load_actor_ends_while_its_step_is_flushed) {
  begin();
  preempt();
  ASSERT_TRUE(engine.system.run_until([this] { return engine.system.peek<flush_stores>(engine.storer).has_value(); }));
  ASSERT_FALSE(engine.loads().empty());
  const auto num_ok = engine.totals().loads_ok;
  engine.system.kill(engine.loader);
  expect_all_is_well(1);
  EXPECT_EQ(engine.totals().withdrawn_plans, 0U);
  EXPECT_GT(engine.totals().loads_ok, num_ok);
}

TEST_P(hazard_actor, load_actor_ends_at_unstage_loads) {
  begin();
  preempt();
  kill_at<flush_stores>(engine.storer);
  kill_at<unstage_loads>(engine.loader);
  expect_all_is_well(2);
}

TEST_P(hazard_actor, load_actor_ends_at_adopt_transfers) {
  begin();
  for (int i = 0; i < 3; ++i) {
    engine.system.kill(engine.loader);
    ASSERT_TRUE(engine.system.run_until([&] { return engine.system.peek<adopt_transfers>(engine.loader).has_value(); }));
  }
  expect_all_is_well(3);
}

TEST_P(hazard_actor, store_actor_ends_at_submit_stores) {
  a = engine.submit(make_prompt(24), 8);
  kill_at<submit_stores>(engine.storer);
  expect_all_is_well(1);
  EXPECT_GE(engine.totals().stores_failed, 1U);
}

TEST_P(hazard_actor, store_actor_ends_at_copies_ended) {
  a = engine.submit(make_prompt(24), 8);
  engine.run();
  EXPECT_TRUE(engine.device.complete_copies(engine.stores().at(0).value));
  kill_at<copies_ended>(engine.storer);
  expect_all_is_well(1);
}

TEST_P(hazard_actor, store_actor_ends_at_flush_stores) {
  begin();
  preempt();
  kill_at<flush_stores>(engine.storer);
  expect_all_is_well(1);
  EXPECT_EQ(engine.totals().withdrawn_plans, 1U);
}

// ACTOR-04. Guards: a flush whose answer died with the actor ends the boundary at once, not by its timeout.
TEST_P(hazard_actor, store_actor_ends_with_a_flush_in_its_hands) {
  begin();
  preempt();
  ASSERT_TRUE(engine.system.run_until([this] { return engine.system.peek<flush_stores>(engine.storer).has_value(); }));
  engine.run();
  ASSERT_TRUE(engine.snapshot().is_boundary_open);
  engine.system.kill(engine.storer);
  engine.run();
  EXPECT_EQ(engine.totals().withdrawn_plans, 1U);
  EXPECT_EQ(engine.restarts.size(), 1U);
  expect_all_is_well(1);
}

TEST_P(hazard_actor, store_actor_ends_at_adopt_transfers) {
  a = engine.submit(make_prompt(24), 8);
  ASSERT_TRUE(engine.run_until_tokens(a, 26));
  for (int i = 0; i < 3; ++i) {
    engine.system.kill(engine.storer);
    ASSERT_TRUE(
        engine.system.run_until([&] { return engine.system.peek<adopt_transfers>(engine.storer).has_value(); }));
  }
  expect_all_is_well(3);
}

// Guards: a flush by the successor waits for what its predecessor had on the stream.
TEST_P(hazard_actor, a_successor_flushes_what_it_adopted) {
  begin();
  engine.complete(engine.loads().at(0));
  a = engine.submit(make_prompt(24), 8);
  ASSERT_TRUE(engine.run_until_tokens(a, 26));
  engine.system.kill(engine.storer);
  ASSERT_TRUE(engine.system.run_until([this] { return engine.restarts.size() == 1; }));
  const auto stores = engine.stores();
  ASSERT_FALSE(stores.empty());
  engine.post_reset(true, false);
  engine.run();
  EXPECT_TRUE(engine.snapshot().is_boundary_open);
  const auto num_steps = engine.totals().steps;
  for (auto tag : engine.device.outstanding_tags()) EXPECT_TRUE(engine.device.complete_copies(tag));
  engine.run();
  EXPECT_EQ(engine.totals().steps, num_steps);
  expect_all_is_well(1);
}

// Guards: an actor that ends again and again ends the engine, with the reason; nobody waits for ever.
TEST_P(hazard_actor, too_many_ends_are_the_end_of_the_engine) {
  engine.complete_request(make_prompt(5), 2);
  for (int i = 0; i < 11; ++i) {
    ASSERT_TRUE(engine.failures.empty());
    engine.system.kill(engine.storer);
    engine.run();
  }
  EXPECT_EQ(engine.restarts.size(), 10U);
  ASSERT_EQ(engine.failures.size(), 1U);
  EXPECT_EQ(engine.failures[0].code, errc::engine_failed);
  EXPECT_NE(engine.failures[0].message.find("store actor ended: too often"), std::string::npos);
}

// Guards: restarts that lie a while back do not count.
TEST_P(hazard_actor, ends_that_are_far_apart_are_survived) {
  for (int i = 0; i < 30; ++i) {
    i % 2 == 0 ? engine.system.kill(engine.storer) : engine.system.kill(engine.loader);
    engine.run();
    engine.system.advance(std::chrono::seconds{7});
  }
  a = engine.submit(make_prompt(24), 8);
  expect_all_is_well(30);
}

}  // namespace
}  // namespace sluice::testing
