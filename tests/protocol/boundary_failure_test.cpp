// SPDX-License-Identifier: Apache-2.0
//
// Boundaries that fail in ways the handler itself never produces while all actors live.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using id_list = std::vector<transfer_id>;

/// A request with held stores, preempted by a reset; the boundary that reports it waits for the test's answer.
struct open_boundary {
  test_engine engine{options()};
  request_id preempted;
  step_boundary boundary;

  static engine_options options() {
    engine_options options;
    options.block_size = 4;
    options.blocks_per_chunk = 3;
    options.has_fake_handler = true;
    return options;
  }

  open_boundary() {
    preempted = engine.submit(make_prompt(24), 40);
    engine.run_until_tokens(preempted, 30);
    EXPECT_TRUE(engine.reset(true, false).success);
    engine.run();
    boundary = engine.handler_probe->take<step_boundary>();
    EXPECT_EQ(boundary.pending.size(), 1U);
  }

  void answer(errc code, const id_list& ids) {
    EXPECT_TRUE(engine.handler_probe->answer<step_boundary>(compat::make_error(code, ids)));
    engine.run();
  }
  void answer_next(errc code) {
    engine.handler_probe->take<step_boundary>();
    answer(code, {});
  }
  bool is_asked() { return !engine.handler_probe->received<step_boundary>().empty(); }
  void clear_next() {
    const auto next = engine.handler_probe->take<step_boundary>();
    EXPECT_TRUE(engine.handler_probe->answer<step_boundary>(boundary_cleared{next.step, 0, 0}));
    engine.run();
  }
};

// Guards: with a transfer actor gone the plan is withdrawn once; nothing asks again in a loop, nothing is lost.
TEST(boundary_failure, a_lost_transfer_actor_is_not_asked_again_at_once) {
  open_boundary story;
  auto& engine = story.engine;
  story.answer(errc::transfer_actor_lost, {});
  EXPECT_EQ(engine.totals().withdrawn_plans, 1U);
  EXPECT_FALSE(story.is_asked());
  EXPECT_FALSE(engine.has_ended(story.preempted));
  engine.system.advance(std::chrono::milliseconds{100});
  engine.run();
  ASSERT_TRUE(story.is_asked()) << "it may have been slow only";
  story.answer_next(errc::transfer_actor_lost);
  const auto other = engine.submit(make_prompt(5, 90), 1);
  engine.run();
  ASSERT_TRUE(story.is_asked()) << "the next input plans again";
  EXPECT_EQ(engine.handler_probe->received<step_boundary>().front().pending.size(), 1U) << "the list was inherited";
  story.clear_next();
  engine.run_to_idle();
  engine.expect_reference(other);
  engine.expect_reference(story.preempted);
}

// Guards: an error that names nothing known still makes progress: it ends the preempted requests instead of coming back
// for ever.
TEST(boundary_failure, an_error_that_names_nothing_known_comes_once) {
  open_boundary story;
  auto& engine = story.engine;
  story.answer(errc::older_load_pending, {{4711}});
  ASSERT_TRUE(engine.has_ended(story.preempted));
  EXPECT_EQ(engine.record(story.preempted).summary->failure.code, errc::older_load_pending);
  EXPECT_EQ(engine.violations.size(), 1U);
  engine.violations.clear();  // reported, as it must be
  while (story.is_asked()) story.clear_next();
  engine.run_to_idle();
}

/// Two old requests that grow, a younger one in the middle of its prefill whose prompt a fourth one is loading, and a
/// pool that has room for little more: a block that an old one needs preempts the younger one.
struct crowded_pool {
  test_engine engine{options()};
  std::vector<token_id> prompt = make_prompt(40, 100);
  request_id old_one, leaver, younger, loading;

  static engine_options options() {
    engine_options options;
    options.block_size = 4;
    options.num_device_blocks = 1 + 31;
    options.max_num_batched_tokens = 3;
    options.has_fake_handler = true;
    options.adjust = [](scheduler_config& config) { config.recompute_budget = 10; };  // nobody waits for pending chunks
    return options;
  }

  crowded_pool() {
    const auto first = engine.submit(prompt, 1);
    engine.run();
    EXPECT_TRUE(engine.has_ended(first));
    EXPECT_TRUE(engine.reset(false, false).success);  // its stores are held: the host has nothing to hit yet
    old_one = engine.submit(make_prompt(4), 60);
    leaver = engine.submit(make_prompt(12, 50), 60);
    younger = engine.submit(prompt, 4);
    engine.system.run_until([&] { return num_computed(younger) >= 9; });
    for (auto store : engine.stores()) EXPECT_TRUE(engine.device.complete_copies(store.value));
    loading = engine.submit(prompt, 4);
    engine.system.run_until([&] { return !engine.loads().empty() || is_asked(); });
  }

  std::uint32_t num_computed(request_id id) {
    const auto request = engine.request(id);
    return request ? request->num_computed_tokens : 0;
  }
  bool is_asked() { return !engine.handler_probe->received<step_boundary>().empty(); }

  /// Clears boundaries that only fence re-used blocks, until one reports a preemption.
  void run_until_preempted() {
    for (int i = 0; i < 100 && engine.totals().preemptions_capacity == 0; ++i) {
      engine.system.run_until([&] { return engine.totals().preemptions_capacity > 0 || is_asked(); });
      if (engine.totals().preemptions_capacity > 0) break;
      clear_next();
    }
    engine.run();
  }
  void clear_next() {
    const auto next = engine.handler_probe->take<step_boundary>();
    EXPECT_TRUE(engine.handler_probe->answer<step_boundary>(boundary_cleared{next.step, 0, 0}));
  }
};

// Guards: a request whose preemption a withdrawn plan did not report joins no older load before it is reported, so that
// the load is not mistaken for one that must not be there.
TEST(boundary_failure, an_unreported_request_joins_no_older_load) {
  crowded_pool story;
  auto& engine = story.engine;
  ASSERT_EQ(engine.loads().size(), 1U);
  const auto load = engine.loads()[0];
  story.run_until_preempted();
  ASSERT_EQ(engine.request(story.younger)->phase, request_phase::waiting);
  ASSERT_TRUE(story.is_asked());
  engine.abort(story.leaver);  // waits for the boundary's end, and then makes room
  engine.run();
  engine.handler_probe->take<step_boundary>();
  ASSERT_TRUE(engine.handler_probe->answer<step_boundary>(compat::make_error(errc::flush_timed_out, id_list{})));
  engine.run();
  EXPECT_EQ(engine.totals().withdrawn_plans, 1U);
  ASSERT_TRUE(story.is_asked());
  EXPECT_TRUE(engine.handler_probe->received<step_boundary>().front().pending.empty());
  EXPECT_EQ(engine.request(story.younger)->phase, request_phase::waiting);
  auto is_loading = [&] { return engine.request(story.younger)->phase == request_phase::loading; };
  for (int i = 0; i < 100 && story.is_asked(); ++i) {
    story.clear_next();
    engine.system.run_until([&] { return is_loading() || story.is_asked(); });
  }
  EXPECT_EQ(engine.request(story.younger)->loads, id_list{load}) << "reported: now it joins";
  for (int i = 0; i < 100 && !engine.snapshot().is_idle; ++i) {
    engine.run_to_idle();
    while (story.is_asked()) story.clear_next();
  }
  engine.expect_reference(story.old_one);
  engine.expect_reference(story.younger);
  engine.expect_reference(story.loading);
}

}  // namespace
}  // namespace sluice::testing
