// SPDX-License-Identifier: Apache-2.0
//
// The facade over real threads.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include <support/live_runtime.hpp>

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;

// Guards: one request, one terminal event, the usage it promises, and all memory back.
TEST(runtime, serves_a_request) {
  auto engine = start_live().value();
  const auto client = submit_to(*engine, greedy_request("The quick brown fox", 40));
  const auto end = client->wait_for_end();
  EXPECT_EQ(end.reason, finish_reason::length);
  EXPECT_EQ(end.usage.num_prompt_tokens, 19U);
  EXPECT_EQ(end.usage.num_output_tokens, 40U);
  EXPECT_EQ(client->tokens().size(), 40U);
  EXPECT_EQ(client->text().size(), 40U);
  const auto idle = wait_until_idle(*engine);
  EXPECT_EQ(idle.blocks.held, 0U);
  EXPECT_EQ(client->num_ends(), 1);
  EXPECT_TRUE(engine->stop(milliseconds{1000}));
}

// Guards: output ends before the stop string, and what was sampled beyond it is neither sent nor counted.
TEST(runtime, ends_before_a_stop_string) {
  auto engine = start_live().value();
  const auto whole = submit_to(*engine, greedy_request("The quick brown fox", 60));
  whole->wait_for_end();
  const auto text = whole->text();
  auto request = greedy_request("The quick brown fox", 60);
  request.stop = {text.substr(20, 3)};
  const auto match = text.find(request.stop[0]);
  const auto client = submit_to(*engine, request);
  const auto end = client->wait_for_end();
  EXPECT_EQ(end.reason, finish_reason::stop);
  EXPECT_EQ(client->text(), text.substr(0, match));
  EXPECT_EQ(client->tokens().size(), match + 3);
  EXPECT_EQ(end.usage.num_output_tokens, match + 3);
  EXPECT_GT(end.usage.num_device_cached_tokens, 0U) << "the prompt's full block is cached";
}

// Guards: a client that goes away ends its request; its blocks come back.
TEST(runtime, aborts_a_request) {
  live_options options;
  options.model.min_step = milliseconds{2};
  auto engine = start_live(options).value();
  request_id id;
  const auto client = submit_to(*engine, greedy_request("Once", 2000), &id);
  ASSERT_TRUE(client->wait_for_tokens(3));
  engine->abort(id);
  EXPECT_EQ(client->wait_for_end().reason, finish_reason::abort);
  EXPECT_EQ(wait_until_idle(*engine).blocks.held, 0U);
  engine->abort(id);  // ended: ignored
}

// Guards: temperature draws depend on seed and position only.
TEST(runtime, the_same_seed_gives_the_same_text) {
  auto engine = start_live().value();
  auto request = greedy_request("A story:", 30);
  request.sampling = {1.0, 7};
  const auto first = submit_to(*engine, request);
  const auto noise = submit_to(*engine, greedy_request("something else", 50));
  first->wait_for_end();
  const auto second = submit_to(*engine, request);
  second->wait_for_end();
  noise->wait_for_end();
  EXPECT_EQ(first->tokens(), second->tokens());
  request.sampling.seed = 8;
  const auto other = submit_to(*engine, request);
  other->wait_for_end();
  EXPECT_NE(other->tokens(), first->tokens());
}

// Guards: bad requests get one error that says what was given and what is allowed; the sink is not called.
TEST(runtime, refuses_bad_requests) {
  live_options options;
  options.engine.max_model_len = 100;
  auto engine = start_live(options).value();
  auto fault = [&](const generation_request& request) {
    const auto refused = engine->submit(request, std::make_shared<waiting_client>());
    return refused ? "none" : std::string(to_string(refused.error().code)) + ": " + refused.error().message;
  };
  EXPECT_EQ(fault(greedy_request("", 5)), "prompt_empty: the prompt has 0 tokens, allowed is 1 or more");
  EXPECT_EQ(fault(greedy_request(std::string(90, 'x'), 11)),
            "prompt_too_long: the prompt has 90 tokens and max_tokens is 11, together 101; allowed are 100");
  EXPECT_EQ(fault(greedy_request("x", 0)), "invalid_argument: max_tokens is 0, allowed is 1 or more");
  auto request = greedy_request("x", 1);
  request.prompt = {1, 300};
  EXPECT_EQ(fault(request), "invalid_argument: prompt token 1 is 300, allowed is 0 to 256");
  request = greedy_request("x", 1);
  request.sampling.temperature = 2.5;
  EXPECT_EQ(fault(request), "invalid_argument: temperature is 2.500000, allowed is 0 to 2");
  request = greedy_request("x", 1);
  request.stop = {""};
  EXPECT_EQ(fault(request), "invalid_argument: a stop string is 0 bytes long, allowed is 1 to 1024");
  submit_to(*engine, greedy_request(std::string(90, 'x'), 10))->wait_for_end();
}

// Guards: beyond the bound requests are refused at once; accepted ones finish and free their places.
TEST(runtime, bounds_the_queue) {
  live_options options;
  options.engine.max_num_seqs = 1;
  options.engine.max_queued_requests = 2;
  options.model.min_step = milliseconds{2};
  auto engine = start_live(options).value();
  std::vector<std::shared_ptr<waiting_client>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(submit_to(*engine, greedy_request("x", 20)));
  const auto refused = engine->submit(greedy_request("x", 20), std::make_shared<waiting_client>());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::queue_full);
  for (const auto& client : clients) client->wait_for_end();
  wait_until_idle(*engine);
  submit_to(*engine, greedy_request("x", 2))->wait_for_end();
}

// Guards: every family of the serving contract that is built exists before the first request.
TEST(runtime, metrics_exist_from_the_start) {
  auto engine = start_live().value();
  const auto text = engine->metrics();
  const std::regex name_line("# TYPE (\\w+) (\\w+)");
  std::set<std::string> names;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), name_line); at != std::sregex_iterator(); ++at)
    names.insert((*at)[1]);
  for (const char* name :
       {"sluice_requests_total", "sluice_prompt_tokens_total", "sluice_generation_tokens_total",
        "sluice_recomputed_tokens_total", "sluice_preemptions_total", "sluice_prefix_queries_tokens_total",
        "sluice_prefix_hits_tokens_total", "sluice_offload_bytes_total", "sluice_offload_transfers_total",
        "sluice_steps_total", "sluice_boundaries_total", "sluice_flushed_stores_total",
        "sluice_boundary_excluded_loads_total", "sluice_evictions_total", "sluice_resets_total", "sluice_requests",
        "sluice_blocks", "sluice_slots", "sluice_slots_pinned", "sluice_transfers_in_flight",
        "sluice_time_to_first_token_seconds", "sluice_time_per_output_token_seconds", "sluice_request_seconds"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_NE(text.find("sluice_blocks{state=\"free\"} 319"), std::string::npos);
}

// Guards: stopping ends open requests, hangs on nothing, and can be done twice and from another thread.
TEST(runtime, stops_with_open_requests) {
  live_options options;
  options.model.min_step = milliseconds{2};
  auto engine = start_live(options).value();
  const auto client = submit_to(*engine, greedy_request("Once", 2000));
  ASSERT_TRUE(client->wait_for_tokens(2));
  auto stopped = std::async(std::launch::async, [&] { return engine->stop(milliseconds{0}); });
  EXPECT_TRUE(stopped.get());
  EXPECT_EQ(client->wait_for_end().reason, finish_reason::abort);
  EXPECT_TRUE(engine->stop(milliseconds{0}));
  const auto late = engine->submit(greedy_request("x", 1), std::make_shared<waiting_client>());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, errc::shutting_down);
  EXPECT_TRUE(reset_and_wait(*engine, {}).caches.empty());
}

// Guards: start and stop leave nothing behind that hangs, with requests made from threads that live on.
TEST(runtime, starts_and_stops_many_times) {
  for (int i = 0; i < 50; ++i) {
    auto engine = start_live().value();
    if (i % 2 == 0) submit_to(*engine, greedy_request("x", 3))->wait_for_end();
    snapshot_of(*engine);
    EXPECT_TRUE(engine->stop(milliseconds{100}));
  }
}

}  // namespace
}  // namespace sluice::testing
