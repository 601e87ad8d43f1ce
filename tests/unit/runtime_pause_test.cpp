// SPDX-License-Identifier: Apache-2.0
//
// Pausing and sleeping with real threads, in both schedulings: what becomes of requests, memory and new work.
#include <future>

#include <gtest/gtest.h>

#include <support/live_control.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;

/// 3 ms for a step, so that a test can act between two of them.
struct runtime_pause : both_schedulings {
  runtime_pause() {
    options.engine.async_scheduling = GetParam();
    options.model.min_step = milliseconds{3};
  }

  void start() { engine = start_live(options).value(); }

  std::vector<token_id> reference() {
    live_options alone;
    alone.engine.async_scheduling = GetParam();
    auto other = start_live(alone).value();
    const auto client = submit_to(*other, request);
    client->wait_for_end();
    return client->tokens();
  }

  std::shared_ptr<waiting_client> start_running() {
    auto client = submit_to(*engine, request);
    EXPECT_TRUE(client->wait_for_tokens(10));
    return client;
  }

  /// Nothing comes any more: neither a step nor a token.
  void expect_silence(const waiting_client& client) {
    std::this_thread::sleep_for(milliseconds{20});  // tokens of the last step are on their way
    const auto tokens = client.tokens().size();
    const auto steps = snapshot_of(*engine).totals.steps;
    std::this_thread::sleep_for(milliseconds{60});
    EXPECT_EQ(client.tokens().size(), tokens);
    EXPECT_EQ(snapshot_of(*engine).totals.steps, steps);
    EXPECT_EQ(client.num_ends(), 0);
  }

  live_options options;
  generation_request request = greedy_request(std::string(100, 'a') + " and so it goes", 60);
  std::unique_ptr<runtime> engine;
};

struct kept_case {
  const char* name;
  bool clears_device, clears_tiers;
  std::uint32_t num_preempted, least_recomputed, most_recomputed;
};

// Guards: a kept request goes on with the tokens it would have had, at no more cost than what was cleared.
TEST_P(runtime_pause, keep_does_what_its_flags_say) {
  const auto expected = reference();
  for (const auto& each : {kept_case{"nothing", false, false, 0, 0, 0}, kept_case{"tiers", false, true, 0, 0, 0},
                           kept_case{"device", true, false, 1, 0, 15}, kept_case{"both", true, true, 1, 115, 175}}) {
    SCOPED_TRACE(each.name);
    start();
    const auto client = start_running();
    const auto report = pause(*engine, {pause_mode::keep, each.clears_device, each.clears_tiers, milliseconds{5000}});
    EXPECT_EQ(report.outcome, control_outcome::done);
    EXPECT_EQ(report.caches.size(), std::size_t{each.clears_device} + std::size_t{each.clears_tiers});
    EXPECT_TRUE(engine->is_paused());
    expect_silence(*client);
    EXPECT_EQ(resume(*engine).outcome, control_outcome::done);
    EXPECT_EQ(client->wait_for_end().reason, finish_reason::length);
    EXPECT_EQ(client->tokens(), expected);
    const auto totals = wait_until_idle(*engine).totals;
    EXPECT_EQ(totals.preemptions_pause, each.num_preempted);
    EXPECT_GE(totals.recomputed_tokens, each.least_recomputed);
    EXPECT_LE(totals.recomputed_tokens, each.most_recomputed);
    EXPECT_EQ(totals.invariant_violations, 0U);
  }
}

// Guards: scenario O130 in process. What had to end has ended when the answer comes; nobody is admitted before resume.
TEST_P(runtime_pause, o130_abort_and_wait_end_what_runs) {
  for (const auto mode : {pause_mode::abort, pause_mode::wait}) {
    start();
    const auto running = start_running();
    EXPECT_EQ(pause(*engine, {mode, true, true, milliseconds{20'000}}).outcome, control_outcome::done);
    EXPECT_TRUE(snapshot_of(*engine).requests.empty());
    EXPECT_EQ(running->wait_for_end().reason, mode == pause_mode::abort ? finish_reason::abort : finish_reason::length);
    const auto late = submit_to(*engine, greedy_request("late", 4));
    expect_silence(*late);
    const auto waiting = snapshot_of(*engine);
    ASSERT_EQ(waiting.requests.size(), 1U);
    EXPECT_EQ(waiting.requests[0].reason, waiting_reason::paused);
    EXPECT_EQ(resume(*engine).outcome, control_outcome::done);
    EXPECT_EQ(late->wait_for_end().reason, finish_reason::length);
  }
}

// Guards: a timeout names the loads that hold the cache, and the engine still admits nobody; resume makes it go on.
TEST_P(runtime_pause, a_timeout_names_the_loads) {
  const auto expected = reference();
  options.device.copy_latency = milliseconds{400};
  start();
  submit_to(*engine, request)->wait_for_end();
  wait_until_idle(*engine);
  ASSERT_TRUE(reset_and_wait(*engine, {}).success);
  const auto client = submit_to(*engine, request);
  for (int i = 0; i < 1000 && snapshot_of(*engine).transfers.empty(); ++i) std::this_thread::sleep_for(milliseconds{1});
  const auto report = pause(*engine, {pause_mode::keep, true, true, milliseconds{30}});
  EXPECT_EQ(report.outcome, control_outcome::timed_out);
  ASSERT_FALSE(report.caches.empty());
  EXPECT_EQ(report.caches[0].cache, "device");
  EXPECT_EQ(report.caches[0].held_by_loads.size(), 1U);
  EXPECT_TRUE(engine->is_paused());
  EXPECT_EQ(resume(*engine).outcome, control_outcome::done);
  EXPECT_FALSE(engine->is_paused());
  client->wait_for_end();
  EXPECT_EQ(client->tokens(), expected);
}

// Guards: what timed out is not reported as cleared, also when only a step in flight was in the way. In synchronous
// scheduling a command is applied between steps, so nothing can be.
TEST_P(runtime_pause, a_timeout_clears_nothing) {
  options.model.min_step = milliseconds{150};
  start();
  const auto client = submit_to(*engine, greedy_request("Once", 5));
  ASSERT_TRUE(client->wait_for_tokens(1));
  const bool is_async = GetParam();
  const auto report = pause(*engine, {pause_mode::keep, true, true, milliseconds{1}});
  EXPECT_EQ(report.outcome, is_async ? control_outcome::timed_out : control_outcome::done);
  for (const auto& cache : report.caches) EXPECT_EQ(cache.reset, !is_async) << cache.cache;
  EXPECT_EQ(resume(*engine).outcome, control_outcome::done);
  EXPECT_EQ(client->wait_for_end().reason, finish_reason::length);
  EXPECT_EQ(snapshot_of(*engine).totals.preemptions_pause, is_async ? 0U : 1U);
}

// Guards: resume cancels a pause that has not come to rest.
TEST_P(runtime_pause, resume_cancels_an_unfinished_pause) {
  start();
  const auto running = start_running();
  std::promise<control_report> ended;
  engine->pause({pause_mode::wait, true, true, milliseconds{20'000}},
                [&](const control_report& report) { ended.set_value(report); });
  EXPECT_EQ(resume(*engine).outcome, control_outcome::done);
  EXPECT_EQ(ended.get_future().get().outcome, control_outcome::cancelled);
  EXPECT_FALSE(engine->is_paused());
  EXPECT_EQ(running->wait_for_end().reason, finish_reason::length);
}

// Guards: a request survives a sleep of either level; the engine goes on only with all memory.
TEST_P(runtime_pause, requests_survive_sleep) {
  const auto expected = reference();
  for (const std::uint32_t level : {1U, 2U}) {
    for (const bool clears_tiers : {false, true}) {
      SCOPED_TRACE(std::to_string(level) + (clears_tiers ? " tiers cleared" : ""));
      start();
      const auto client = start_running();
      EXPECT_EQ(sleep(*engine, {level, pause_mode::keep, clears_tiers, milliseconds{5000}}).outcome,
                control_outcome::done);
      EXPECT_TRUE(engine->is_sleeping());
      EXPECT_EQ(resume(*engine).outcome, control_outcome::refused);
      expect_silence(*client);
      const bool kept_weights = level == 1;
      EXPECT_EQ(wake(*engine, {kept_weights, !kept_weights}).outcome, control_outcome::done);
      EXPECT_TRUE(engine->is_sleeping());
      EXPECT_EQ(wake(*engine).outcome, control_outcome::done);
      EXPECT_FALSE(engine->is_sleeping());
      EXPECT_FALSE(engine->is_paused());
      client->wait_for_end();
      EXPECT_EQ(client->tokens(), expected);
      EXPECT_EQ(wait_until_idle(*engine).totals.recomputed_tokens < 16, !clears_tiers);
    }
  }
}

// Guards: the pool's memory is free while the engine sleeps, and taken again when it wakes up.
TEST_P(runtime_pause, sleep_gives_device_memory_back) {
  auto device = make_host_device();
  const auto* host = device.get();
  engine = runtime::start(options.engine, std::move(device), make_tiny_model(), make_byte_tokenizer()).value();
  const auto pool_bytes = options.engine.num_device_blocks * engine->info().bytes_per_block;
  const auto awake = host->info().free_device_bytes;
  ASSERT_EQ(sleep(*engine, {}).outcome, control_outcome::done);
  EXPECT_EQ(host->info().free_device_bytes, awake + pool_bytes);
  ASSERT_EQ(wake(*engine).outcome, control_outcome::done);
  EXPECT_EQ(host->info().free_device_bytes, awake);
}

// Guards: asleep, a request waits, or is refused by name when the option says so.
TEST_P(runtime_pause, refuse_while_asleep) {
  for (const bool refuses : {false, true}) {
    options.engine.refuse_while_asleep = refuses;
    start();
    ASSERT_EQ(sleep(*engine, {}).outcome, control_outcome::done);
    const auto client = std::make_shared<waiting_client>();
    const auto accepted = engine->submit(greedy_request("late", 4), client);
    EXPECT_EQ(accepted.has_value(), !refuses);
    EXPECT_EQ(accepted ? errc::none : accepted.error().code, refuses ? errc::asleep : errc::none);
    ASSERT_EQ(wake(*engine).outcome, control_outcome::done);
    EXPECT_EQ(submit_to(*engine, greedy_request("later", 4))->wait_for_end().reason, finish_reason::length);
    if (!refuses) client->wait_for_end();
    EXPECT_EQ(client->num_ends(), refuses ? 0 : 1);
  }
}

// Guards: what is paused, waits, or loads can be ended like everything else.
TEST_P(runtime_pause, abort_all_reaches_requests_in_every_phase) {
  options.device.copy_latency = milliseconds{200};
  options.engine.max_num_seqs = 2;
  start();
  submit_to(*engine, request)->wait_for_end();
  wait_until_idle(*engine);
  ASSERT_TRUE(reset_and_wait(*engine, {}).success);
  std::vector<std::shared_ptr<waiting_client>> clients{submit_to(*engine, request),
                                                       submit_to(*engine, greedy_request("run", 2000)),
                                                       submit_to(*engine, greedy_request("wait", 2000))};
  ASSERT_TRUE(clients[1]->wait_for_tokens(1));
  engine->abort_all();
  for (const auto& client : clients) EXPECT_EQ(client->wait_for_end().reason, finish_reason::abort);
  ASSERT_EQ(pause(*engine, {pause_mode::keep, false, false, milliseconds{5000}}).outcome, control_outcome::done);
  const auto paused = submit_to(*engine, request);
  engine->abort_all();
  EXPECT_EQ(paused->wait_for_end().reason, finish_reason::abort);
  ASSERT_EQ(resume(*engine).outcome, control_outcome::done);
  EXPECT_EQ(wait_until_idle(*engine).blocks.held, 0U);
}

SLUICE_IN_BOTH_SCHEDULINGS(runtime_pause);

}  // namespace
}  // namespace sluice::testing
