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

}  // namespace
}  // namespace sluice::testing
