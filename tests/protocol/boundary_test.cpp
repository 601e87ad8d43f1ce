// SPDX-License-Identifier: Apache-2.0
//
// The story of the project, one message at a time: a reset preempts, the next step reports the preemption and creates a
// load; the flush waits for older stores and leaves the new load alone.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using id_list = std::vector<transfer_id>;

engine_options chunks_of_three() {
  engine_options options;
  options.block_size = 4;
  options.blocks_per_chunk = 3;
  return options;
}

/// Runs whole steps until the request has that many tokens. Copies are held.
void decode_until(test_engine& engine, request_id id, std::uint32_t num_tokens) {
  for (int i = 0; i < 1000; ++i) {
    const auto request = engine.request(id);
    if (request && request->num_tokens >= num_tokens) return;
    engine.run_step();
  }
  FAIL() << "request " << id.value << " does not reach " << num_tokens << " tokens";
}

/// Delivers the boundary up to the flush, which is then next in the store actor's mailbox.
void deliver_until_flush(test_engine& engine) {
  ASSERT_TRUE(engine.system.run_until([&] { return engine.system.peek<step_boundary>(engine.handler).has_value(); }));
  ASSERT_TRUE(engine.system.deliver<step_boundary>(engine.handler));
  ASSERT_TRUE(engine.system.run_until(
      [&] { return engine.system.peek<current_step_loads>(engine.loader).has_value(); }));
  ASSERT_TRUE(engine.system.deliver<current_step_loads>(engine.loader));
  ASSERT_TRUE(engine.system.deliver_response(engine.handler));
}

// (a) Guards: all pending stores of a preempted request are flushed, and the step waits for them.
TEST(boundary, flushes_every_pending_store_of_a_preempted_request) {
  test_engine engine(chunks_of_three());
  const auto a = engine.submit(make_prompt(24), 40);
  decode_until(engine, a, 44);
  const auto stores = engine.stores();
  ASSERT_EQ(stores.size(), 2U);  // {0..5} by the prefill, {6..8} while decoding
  EXPECT_TRUE(engine.reset(true, false).success);
  deliver_until_flush(engine);
  const auto flush = engine.system.peek<flush_stores>(engine.storer);
  ASSERT_TRUE(flush.has_value()) << engine.system.describe_next(engine.storer);
  EXPECT_EQ(flush->ids, stores);
  const auto steps = engine.totals().steps;
  engine.run();
  EXPECT_TRUE(engine.snapshot().is_boundary_open);
  EXPECT_EQ(engine.totals().steps, steps);
  engine.complete(stores[0]);
  EXPECT_EQ(engine.totals().steps, steps) << "one store has not settled";
  engine.complete(stores[1]);
  EXPECT_GT(engine.totals().steps, steps);
  EXPECT_EQ(engine.totals().flushed_stores, 2U);
  engine.run_to_idle();
  engine.expect_reference(a);
}

// (b) Guards: nothing is flushed for a load that the same step creates; it runs its normal course.
TEST(boundary, leaves_the_load_of_its_own_step_alone) {
  test_engine engine(chunks_of_three());
  const auto a = engine.submit(make_prompt(24), 30);
  decode_until(engine, a, 40);
  for (auto store : engine.stores()) EXPECT_TRUE(engine.device.complete_copies(store.value));
  engine.run_step();
  engine.run_step();
  ASSERT_TRUE(engine.stores().empty());
  EXPECT_TRUE(engine.reset(true, false).success);
  const auto staged = engine.system.peek<stage_loads>(engine.loader);
  ASSERT_TRUE(staged.has_value()) << engine.system.describe_next(engine.loader);
  ASSERT_EQ(staged->loads.size(), 1U);
  const auto load = staged->loads[0].id;
  const auto boundary = engine.system.peek<step_boundary>(engine.handler);
  ASSERT_TRUE(boundary.has_value());
  ASSERT_EQ(boundary->pending.size(), 1U);
  EXPECT_EQ(boundary->pending[0].id, load);
  EXPECT_EQ(boundary->pending[0].direction, transfer_direction::load);
  EXPECT_EQ(boundary->pending[0].request, a);

  ASSERT_TRUE(engine.system.deliver<stage_loads>(engine.loader));
  deliver_until_flush(engine);
  EXPECT_FALSE(engine.system.peek<flush_stores>(engine.storer).has_value()) << "an empty flush asks nobody";
  ASSERT_TRUE(engine.system.deliver_response(engine.scheduler));  // boundary_cleared
  const auto submit = engine.system.peek<submit_loads>(engine.loader);
  ASSERT_TRUE(submit.has_value());
  EXPECT_TRUE(submit->loads.empty()) << "what was staged goes";
  EXPECT_EQ(submit->step, boundary->step);
  engine.run();
  EXPECT_EQ(engine.loads(), id_list{load});
  EXPECT_EQ(engine.request(a)->phase, request_phase::loading);
  EXPECT_EQ(engine.totals().boundary_excluded_loads, 1U);
  EXPECT_EQ(engine.totals().flushed_stores, 0U);
  engine.complete(load);
  EXPECT_TRUE(engine.loads().empty());
  engine.run_to_idle();
  engine.expect_reference(a);
  EXPECT_EQ(engine.totals().loads_ok, 1U);
}

/// A, with stores in flight, and B, whose stores have settled, are preempted by one reset; the next plan reports both
/// and creates a load for B.
struct old_stores_and_new_load {
  test_engine engine{chunks_of_three()};
  request_id a, b;
  id_list old_stores;

  old_stores_and_new_load() {
    b = engine.submit(make_prompt(24, 100), 60);
    decode_until(engine, b, 40);
    for (auto store : engine.stores()) EXPECT_TRUE(engine.device.complete_copies(store.value));
    a = engine.submit(make_prompt(24), 60);
    decode_until(engine, a, 26);
    old_stores = engine.stores();
    EXPECT_FALSE(old_stores.empty());
    EXPECT_EQ(engine.request(b)->num_unsettled_stores, 0U);
    EXPECT_GT(engine.request(a)->num_unsettled_stores, 0U);
    EXPECT_TRUE(engine.reset(true, false).success);
  }

  void finish() {
    engine.run_to_idle();
    engine.expect_reference(a);
    engine.expect_reference(b);
  }
};

// (c) Guards: both at once. The old stores are flushed, the new load is untouched.
TEST(boundary, flushes_old_stores_and_leaves_the_new_load) {
  old_stores_and_new_load story;
  auto& engine = story.engine;
  const auto boundary = engine.system.peek<step_boundary>(engine.handler);
  ASSERT_TRUE(boundary.has_value());
  ASSERT_EQ(engine.loads().size(), 1U);
  const auto load = engine.loads()[0];
  EXPECT_EQ(boundary->pending.size(), story.old_stores.size() + 1);
  ASSERT_TRUE(engine.system.deliver<stage_loads>(engine.loader));
  deliver_until_flush(engine);
  const auto flush = engine.system.peek<flush_stores>(engine.storer);
  ASSERT_TRUE(flush.has_value()) << engine.system.describe_next(engine.storer);
  EXPECT_EQ(flush->ids, story.old_stores);
  engine.run();
  EXPECT_TRUE(engine.snapshot().is_boundary_open);
  EXPECT_TRUE(engine.device.outstanding("load").empty()) << "the load is staged, not submitted";
  for (auto store : story.old_stores) engine.complete(store);
  EXPECT_FALSE(engine.snapshot().is_boundary_open);
  EXPECT_EQ(engine.loads().front(), load) << "A may have a load of its own by now";
  EXPECT_EQ(engine.device.outstanding_tags().front(), load.value) << "submitted";
  EXPECT_EQ(engine.totals().boundary_excluded_loads, 1U);
  story.finish();
}

// (d1) Guards: an older load in a boundary is an error that names it, and nothing is flushed.
TEST(boundary, an_older_load_is_an_error_that_names_it) {
  deterministic_system system([](caf::actor_system_config& config) {
    compat::register_types<caf::id_block::sluice>(config);
    compat::register_error_codes<errc>(config);
  });
  probe<load_actor> loader(system);
  probe<store_actor> storer(system);
  probe<scheduler_actor> unused(system);
  const auto handler = system.spawn<preemption_handler, preemption_handler_state>(loader.handle(), storer.handle(),
                                                                                 preemption_options{});
  const step_boundary boundary{{7},
                               {{{3}, transfer_direction::store, {1}},
                                {{4}, transfer_direction::load, {1}},
                                {{9}, transfer_direction::load, {2}}},
                               {{5}}};
  const auto answer = std::make_shared<caf::error>();
  const auto asker = system.system().spawn([=](caf::event_based_actor* self) {
    compat::mail(self, boundary)
        .request(handler, std::chrono::seconds{1})
        .then([](const boundary_cleared&) { ADD_FAILURE() << "cleared"; },
              [=](const caf::error& reason) { *answer = reason; });
  });
  system.run_all();
  ASSERT_EQ(loader.received<current_step_loads>().size(), 1U);
  ASSERT_TRUE(loader.answer<current_step_loads>(step_load_ids{{7}, {{9}}}));
  system.run_all();
  EXPECT_EQ(compat::code_of<errc>(*answer), errc::older_load_pending);
  EXPECT_EQ(compat::context_of<id_list>(*answer), id_list{{4}});
  EXPECT_TRUE(storer.received<flush_stores>().empty());
}

/// The next boundary is answered by the test.
engine_options with_fake_handler() {
  auto options = chunks_of_three();
  options.has_fake_handler = true;
  return options;
}

// (d2) Guards: the scheduler, told of an older load, withdraws the plan and fails that request only; the request's
// blocks come back when its transfers settle.
TEST(boundary, an_older_load_fails_its_request_and_no_other) {
  test_engine engine(with_fake_handler());
  const auto prompt = make_prompt(24, 60);
  engine.warm_host(prompt);
  const auto faulty = engine.submit(prompt + make_prompt(3, 200), 8);
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  const auto load = engine.loads()[0];
  const auto other = engine.submit(make_prompt(24, 140), 40);
  decode_until(engine, other, 30);
  EXPECT_FALSE(engine.reset(true, false).success) << "a load is in flight: the device refuses";
  // A boundary all the same: the other request's stores are held, its blocks are given out again.
  engine.abort(other);
  engine.run();
  const auto third = engine.submit(make_prompt(360, 1), 1);
  engine.run();
  ASSERT_FALSE(engine.handler_probe->received<step_boundary>().empty());
  const auto boundary = engine.handler_probe->take<step_boundary>();
  const auto held = engine.snapshot().blocks.held;
  ASSERT_TRUE(engine.handler_probe->answer<step_boundary>(compat::make_error(errc::older_load_pending, id_list{load})));
  engine.run();
  ASSERT_TRUE(engine.has_ended(faulty));
  EXPECT_EQ(engine.record(faulty).summary->reason, finish_reason::error);
  EXPECT_EQ(engine.record(faulty).summary->failure.code, errc::older_load_pending);
  EXPECT_EQ(engine.totals().withdrawn_plans, 1U);
  EXPECT_LT(boundary.step, engine.snapshot().last_step) << "the next plan has its own step";
  EXPECT_LE(engine.snapshot().blocks.held, held);
  EXPECT_EQ(engine.loads(), id_list{load}) << "it runs to its physical end";
  EXPECT_EQ(engine.faults(), std::vector<std::string>{});
  engine.violations.clear();  // reported, as it must be
  ASSERT_FALSE(engine.handler_probe->received<step_boundary>().empty());
  const auto again = engine.handler_probe->take<step_boundary>();
  EXPECT_TRUE(again.pending.empty()) << "what was quarantined is in no later boundary";
  ASSERT_TRUE(engine.handler_probe->answer<step_boundary>(boundary_cleared{again.step, 0, 0}));
  engine.run();
  EXPECT_TRUE(engine.has_ended(third));
  const auto before = engine.snapshot().blocks;
  engine.complete(load);
  EXPECT_EQ(engine.totals().loads_timed_out, 1U);
  EXPECT_EQ(engine.snapshot().blocks.free + engine.snapshot().blocks.cached, before.free + before.cached + 6);
  engine.run_to_idle();
  engine.expect_reference(third);
}

// (e) Guards: a flush that never settles fails nobody; after its timeout the stores are given up and quarantined.
TEST(boundary, a_flush_that_times_out_gives_the_stores_up) {
  old_stores_and_new_load story;
  auto& engine = story.engine;
  engine.run();
  ASSERT_TRUE(engine.snapshot().is_boundary_open);
  const auto open_step = engine.snapshot().last_step;
  engine.system.advance(std::chrono::seconds{11});
  ASSERT_TRUE(engine.system.run_until([&] { return engine.totals().withdrawn_plans == 1; }));
  EXPECT_GT(engine.snapshot().last_step, open_step);
  EXPECT_FALSE(engine.has_ended(story.a));
  EXPECT_FALSE(engine.has_ended(story.b));
  const auto snapshot = engine.snapshot();
  EXPECT_EQ(snapshot.blocks.quarantined, 6U) << "the blocks of A's two complete chunks";
  EXPECT_EQ(snapshot.slots.draining, 2U);
  EXPECT_EQ(engine.request(story.a)->num_unsettled_stores, 0U);
  EXPECT_EQ(engine.faults(), std::vector<std::string>{});
  engine.run_step();
  EXPECT_FALSE(engine.snapshot().is_boundary_open) << "the next boundary has nothing to wait for";
  engine.run();
  EXPECT_TRUE(engine.has_ended(story.a)) << "it recomputes, the copies still held";
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 6U) << "nobody got them meanwhile";
  for (auto store : story.old_stores) engine.complete(store);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 0U);
  EXPECT_EQ(engine.totals().stores_timed_out, story.old_stores.size());
  story.finish();
}

}  // namespace
}  // namespace sluice::testing
