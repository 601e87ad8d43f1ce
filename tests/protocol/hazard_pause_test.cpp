// SPDX-License-Identifier: Apache-2.0
//
// Hazards of pausing: when a pause answers, what it leaves in which cache, and what goes on in the meantime.
#include <tuple>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

/// R decodes with stores in flight, L waits for a load, W finds no place.
struct busy_engine {
  explicit busy_engine(bool is_async) : engine(options(is_async)) {
    engine.warm_host(make_prompt(12));
    r = engine.submit(make_prompt(9, 101), 12);
    EXPECT_TRUE(engine.run_until_tokens(r, 11));
    l = engine.submit(make_prompt(12) + std::vector<token_id>{201, 202}, 6);
    w = engine.submit(make_prompt(6, 51), 4);
    EXPECT_TRUE(engine.system.run_until([&] { return !engine.loads().empty() && engine.request(w).has_value(); }));
    load = engine.loads().at(0);
    EXPECT_EQ(engine.request(r)->phase, request_phase::running);
  }

  static engine_options options(bool is_async) {
    auto options = sized(4, 1, 100);
    options.max_num_seqs = 2;
    options.async_scheduling = is_async;
    return options;
  }

  bool is_answered() const { return engine.last_control->has_value(); }

  test_engine engine;
  request_id r, l, w;
  transfer_id load;
};

/// Mode, clear_cache, clear_tiers, asynchronous scheduling.
struct hazard_pause_matrix : ::testing::TestWithParam<std::tuple<pause_mode, bool, bool, bool>> {
  pause_mode mode() const { return std::get<0>(GetParam()); }
  bool clears_device() const { return std::get<1>(GetParam()); }
  bool clears_tiers() const { return std::get<2>(GetParam()); }

  /// Up to the answer, which must not come before the load has settled.
  void pause() {
    auto& engine = busy.engine;
    engine.post(pause_engine{mode(), clears_device(), clears_tiers(), 60s});
    engine.run();
    ASSERT_FALSE(busy.is_answered()) << "a load is in flight";
    EXPECT_EQ(engine.control(), control_state::pausing);
    EXPECT_EQ(engine.has_ended(busy.r), mode() != pause_mode::keep);
    EXPECT_EQ(engine.has_ended(busy.l), mode() == pause_mode::abort);
    EXPECT_EQ(engine.has_ended(busy.w), mode() == pause_mode::abort);
    ASSERT_TRUE(engine.device.complete_copies(busy.load.value));
    engine.run();
    ASSERT_TRUE(busy.is_answered());
    EXPECT_EQ((*engine.last_control)->outcome, control_outcome::done);
    EXPECT_EQ(engine.control(), control_state::paused);
    EXPECT_EQ(engine.has_ended(busy.l), mode() != pause_mode::keep);
  }

  void check_report() {
    std::vector<std::string> expected, named;
    if (clears_device()) expected.push_back("device");
    if (clears_tiers()) expected.push_back("host");
    for (const auto& cache : (*busy.engine.last_control)->caches) {
      named.push_back(cache.cache);
      EXPECT_TRUE(cache.reset) << cache.cache;
    }
    EXPECT_EQ(named, expected);
  }

  void check_caches() {
    const auto paused = busy.engine.snapshot();
    const bool keeps_blocks = mode() == pause_mode::keep && !clears_device();
    EXPECT_EQ(paused.blocks.held > 0, keeps_blocks) << paused.blocks.held;
    EXPECT_EQ(paused.blocks.free == 99U, clears_device());
    if (clears_tiers()) {
      EXPECT_EQ(paused.slots.ready, 0U);
      EXPECT_EQ(paused.slots.pending, 0U);
      EXPECT_EQ(paused.slots.draining, paused.slots.pinned);
    } else {
      EXPECT_EQ(paused.slots.ready, 3U);  // R's stores are held
    }
    const auto num_preempted = mode() == pause_mode::keep && clears_device() ? 2U : 0U;
    EXPECT_EQ(paused.totals.preemptions_pause, num_preempted);
  }

  void check_nothing_steps() {
    auto& engine = busy.engine;
    const auto before = engine.totals();
    while (engine.device.run_everything() > 0) engine.run();
    EXPECT_EQ(engine.totals().steps, before.steps);
    EXPECT_EQ(engine.totals().loads_ok, before.loads_ok);
  }

  /// Everybody who was not aborted ends with the right tokens.
  void resume() {
    auto& engine = busy.engine;
    EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
    engine.run_to_idle();
    for (auto id : {busy.r, busy.l, busy.w}) {
      if (mode() == pause_mode::abort)
        EXPECT_EQ(engine.record(id).summary->reason, finish_reason::abort);
      else
        engine.expect_reference(id);
    }
  }

  /// What a later request with the prompt that was warm before takes from where.
  void check_later_request() {
    auto& engine = busy.engine;
    if (mode() == pause_mode::keep) return;  // L has computed or loaded it again
    const auto again = engine.complete_request(make_prompt(12) + std::vector<token_id>{211}, 2);
    engine.expect_reference(again);
    const auto usage = engine.record(again).summary->usage;
    EXPECT_EQ(usage.num_device_cached_tokens, clears_device() ? 0U : 12U);
    EXPECT_EQ(usage.num_host_cached_tokens, clears_device() && !clears_tiers() ? 12U : 0U);
  }

  busy_engine busy{std::get<3>(GetParam())};
};

// PAUSE-04, PAUSE-06, section 8. Guards: a pause answers once loads have settled, by its mode ends requests, lets them
// end or keeps them, clears exactly the caches named, and what it kept goes on with the right tokens.
TEST_P(hazard_pause_matrix, a_pause_ends_keeps_and_clears_what_it_says) {
  pause();
  check_report();
  check_caches();
  check_nothing_steps();
  resume();
  check_later_request();
}

// Section 8. Guards: after a pause that cleared both caches no request, not even one that it kept, reads anything older.
TEST_P(hazard_pause_matrix, nothing_older_is_reachable_once_both_are_cleared) {
  pause();
  if (clears_device() && clears_tiers()) busy.engine.model.begin_epoch_after(busy.engine.snapshot().last_step);
  resume();
  for (token_id first : {1, 101}) {
    const auto id = busy.engine.complete_request(make_prompt(12, first) + std::vector<token_id>{221}, 3);
    busy.engine.expect_reference(id);
  }
}

std::string name_of(const std::tuple<pause_mode, bool, bool, bool>& chosen) {
  const auto [mode, clears_device, clears_tiers, is_async] = chosen;
  const auto name = [](pause_mode of) -> std::string {
    switch (of) {
      case pause_mode::abort: return "abort";
      case pause_mode::wait: return "wait";
      case pause_mode::keep: return "keep";
    }
    return "";
  };
  return name(mode) + (clears_device ? "_device" : "") + (clears_tiers ? "_tiers" : "") + (is_async ? "_async" : "_sync");
}

INSTANTIATE_TEST_SUITE_P(all, hazard_pause_matrix,
                         ::testing::Combine(::testing::Values(pause_mode::abort, pause_mode::wait, pause_mode::keep),
                                            ::testing::Bool(), ::testing::Bool(), ::testing::Bool()),
                         [](const auto& chosen) { return name_of(chosen.param); });

struct hazard_pause : both_schedulings {};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_pause);

// Section 8, keep with the device alone cleared. Guards: complete chunks are stored before their blocks go, so that
// after the pause only the tail that fills no chunk is computed again.
TEST_P(hazard_pause, what_a_keeping_pause_stored_is_not_computed_again) {
  busy_engine busy(GetParam());
  auto& engine = busy.engine;
  engine.post(pause_engine{pause_mode::keep, true, false, 60s});
  engine.run();
  engine.complete(busy.load);
  ASSERT_TRUE(busy.is_answered());
  const auto num_computed = engine.request(busy.r)->num_tokens - 1;
  EXPECT_EQ(engine.request(busy.r)->num_computed_tokens, 0U);
  EXPECT_EQ(engine.totals().recomputed_tokens, 0U);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  engine.run_to_idle();
  EXPECT_EQ(engine.totals().recomputed_tokens, num_computed % 4);
  for (auto id : {busy.r, busy.l, busy.w}) engine.expect_reference(id);
}

// The same without stores as they come (offload `preempted`). Guards: the pause itself stores the chunks, held
// copies or not, and the boundary after it waits for them.
TEST_P(hazard_pause, a_keeping_pause_stores_chunks_that_nobody_stored_yet) {
  auto options = busy_engine::options(GetParam());
  options.adjust = [](scheduler_config& config) { config.offload = offload_scope::preempted; };
  test_engine engine(std::move(options));
  const auto r = engine.submit(make_prompt(9, 101), 12);
  ASSERT_TRUE(engine.run_until_tokens(r, 15));
  ASSERT_TRUE(engine.stores().empty());
  EXPECT_EQ(engine.carry_out(pause_engine{pause_mode::keep, true, false, 60s}).outcome, control_outcome::done);
  engine.run();
  ASSERT_EQ(engine.stores().size(), 1U);  // outlives the answer
  EXPECT_EQ(engine.snapshot().blocks.held, 0U);
  const auto source = engine.device_bytes(engine.stores()[0]);
  const auto store = engine.stores()[0];
  const auto num_computed = engine.request(r)->num_tokens - 1;
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  engine.run();
  EXPECT_TRUE(engine.loads().empty());
  engine.complete(store);
  EXPECT_EQ(engine.tier_bytes(store), source);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(r).size(), num_computed / 4);
  EXPECT_EQ(engine.totals().recomputed_tokens, num_computed % 4);
  engine.expect_reference(r);
}

// PAUSE-04. Guards: a store that is held, of a request that has ended, does not hold a pause; it settles during it, and
// its chunks are hits afterwards.
TEST_P(hazard_pause, pause_04_held_stores_do_not_hold_a_pause) {
  test_engine engine(busy_engine::options(GetParam()));
  const auto b = engine.submit(make_prompt(8), 1);
  engine.run();
  ASSERT_TRUE(engine.has_ended(b));
  ASSERT_EQ(engine.stores().size(), 1U);
  for (auto mode : {pause_mode::keep, pause_mode::wait, pause_mode::abort})
    EXPECT_EQ(engine.carry_out(pause_engine{mode, false, false, 60s}).outcome, control_outcome::done);
  EXPECT_EQ(engine.stores().size(), 1U);
  engine.complete(engine.stores()[0]);
  EXPECT_EQ(engine.totals().stores_ok, 1U);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto again = engine.complete_request(make_prompt(8) + std::vector<token_id>{201}, 2);
  EXPECT_EQ(engine.traffic().loaded_ordinals(again), (ordinals{0, 1}));
}

// PAUSE-08. Guards: the pause is in force where steps are started: what comes after its answer is accepted, frozen, can
// be aborted at once, and is served in order after the resume. Pausing or resuming twice has the effect of once.
TEST_P(hazard_pause, pause_08_requests_during_a_pause_are_frozen_and_served_in_order) {
  auto options = busy_engine::options(GetParam());
  options.max_num_seqs = 1;
  test_engine engine(std::move(options));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(engine.carry_out(pause_engine{pause_mode::keep, false, false, 60s}).outcome, control_outcome::done);
  const auto steps = engine.totals().steps;
  const auto a = engine.submit(make_prompt(6), 3), b = engine.submit(make_prompt(6, 51), 3);
  engine.run();
  engine.abort(b);
  engine.run();
  const auto c = engine.submit(make_prompt(6, 101), 3);
  engine.run();
  EXPECT_EQ(engine.totals().steps, steps);
  EXPECT_EQ(engine.control(), control_state::paused);
  ASSERT_TRUE(engine.has_ended(b));
  EXPECT_EQ(engine.record(b).summary->reason, finish_reason::abort);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  EXPECT_EQ(engine.control(), control_state::running);
  ASSERT_TRUE(engine.system.run_until([&] { return engine.has_ended(a); }));
  EXPECT_FALSE(engine.has_ended(c));
  engine.run_to_idle();
  engine.expect_reference(a);
  engine.expect_reference(c);
}

// PAUSE-08. Guards: waiting for an endless request is bounded in time and says so; the engine admits nobody until it is
// resumed, and the request goes on all the while.
TEST_P(hazard_pause, pause_08_waiting_for_an_endless_request_is_bounded) {
  auto options = busy_engine::options(GetParam());
  options.max_num_batched_tokens = 4;
  test_engine engine(std::move(options));
  const auto endless = engine.submit(make_prompt(6), 60);
  ASSERT_TRUE(engine.run_until_tokens(endless, 9));
  engine.post(pause_engine{pause_mode::wait, true, true, 5s});
  ASSERT_TRUE(engine.run_until_tokens(endless, 12));
  EXPECT_FALSE(engine.last_control->has_value());
  engine.system.advance(5s);
  ASSERT_TRUE(engine.system.run_until([&] { return engine.last_control->has_value(); }));
  EXPECT_EQ((*engine.last_control)->outcome, control_outcome::timed_out);
  EXPECT_FALSE(engine.has_ended(endless));
  const auto later = engine.submit(make_prompt(6, 101), 2);
  engine.run();
  EXPECT_TRUE(engine.has_ended(endless));
  EXPECT_FALSE(engine.has_ended(later));
  EXPECT_EQ(engine.control(), control_state::paused);
  EXPECT_GT(engine.snapshot().blocks.cached, 0U);  // nobody is told any more, so nothing is cleared
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  engine.run_to_idle();
  engine.expect_reference(endless);
  engine.expect_reference(later);
}

}  // namespace
}  // namespace sluice::testing
