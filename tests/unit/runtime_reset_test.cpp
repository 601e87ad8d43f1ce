// SPDX-License-Identifier: Apache-2.0
//
// The story of the project in one process, with real threads: a flagged reset while requests run and the host tier is
// warm. The next step reports the preemptions and creates the loads that bring the requests back.
#include <gtest/gtest.h>

#include <support/live_runtime.hpp>

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;

live_options slow_steps() {
  live_options options;
  options.model.min_step = milliseconds{3};
  return options;
}

std::vector<token_id> reference_of(const generation_request& request) {
  auto engine = start_live().value();
  const auto client = submit_to(*engine, request);
  client->wait_for_end();
  return client->tokens();
}

// Guards: DESIGN section 1, in process. Nothing is pending when the reset lands; the load of the step that reports the
// preemption is left out of the flush, and the tokens do not change.
TEST(runtime_reset, a_running_request_comes_back_by_a_load_of_the_same_step) {
  const auto request = greedy_request(std::string(200, 'a') + " and so it goes", 150);
  const auto expected = reference_of(request);
  auto engine = start_live(slow_steps()).value();
  submit_to(*engine, greedy_request(std::string(200, 'a') + " and so it goes", 1))->wait_for_end();
  wait_until_idle(*engine);
  std::uint64_t num_excluded = 0;
  for (int attempt = 0; attempt < 20 && num_excluded == 0; ++attempt) {
    const auto client = submit_to(*engine, request);
    ASSERT_TRUE(client->wait_for_tokens(20 + static_cast<std::size_t>(attempt)));
    const auto report = reset_and_wait(*engine, {true, false});
    EXPECT_TRUE(report.success);
    client->wait_for_end();
    EXPECT_EQ(client->tokens(), expected);
    num_excluded = wait_until_idle(*engine).totals.boundary_excluded_loads;
  }
  const auto totals = snapshot_of(*engine).totals;
  EXPECT_GT(num_excluded, 0U);
  EXPECT_GT(totals.loaded_bytes, 0U);
  EXPECT_GT(totals.preemptions_reset, 0U);
  EXPECT_EQ(totals.invariant_violations, 0U);
}

// Guards: a reset that meets a load in flight says so, preempts nobody, and changes no token.
TEST(runtime_reset, a_load_in_flight_holds_the_device) {
  auto options = slow_steps();
  options.device.copy_latency = milliseconds{100};
  const auto request = greedy_request(std::string(200, 'b'), 20);
  const auto expected = reference_of(request);
  auto engine = start_live(options).value();
  submit_to(*engine, request)->wait_for_end();
  wait_until_idle(*engine);
  ASSERT_TRUE(reset_and_wait(*engine, {}).success);
  const auto client = submit_to(*engine, request);
  for (int i = 0; i < 1000 && snapshot_of(*engine).transfers.empty(); ++i) std::this_thread::sleep_for(milliseconds{1});
  const auto report = reset_and_wait(*engine, {true, false});
  EXPECT_FALSE(report.success);
  ASSERT_EQ(report.caches.size(), 1U);
  EXPECT_EQ(report.caches[0].held_by_loads.size(), 1U);
  const auto end = client->wait_for_end();
  EXPECT_EQ(client->tokens(), expected);
  EXPECT_EQ(end.usage.num_host_cached_tokens, 192U);
  EXPECT_EQ(end.usage.num_preemptions, 0U);
}

// Guards: after both caches were reset nothing is found in either.
TEST(runtime_reset, both_caches_are_empty_afterwards) {
  auto engine = start_live().value();
  const auto request = greedy_request(std::string(100, 'c'), 5);
  submit_to(*engine, request)->wait_for_end();
  wait_until_idle(*engine);
  const auto report = reset_and_wait(*engine, {false, true});
  EXPECT_TRUE(report.success);
  ASSERT_EQ(report.caches.size(), 2U);
  EXPECT_EQ(report.caches[0].num_dropped, 6U);
  EXPECT_EQ(report.caches[1].num_dropped, 6U);
  const auto client = submit_to(*engine, request);
  const auto end = client->wait_for_end();
  EXPECT_EQ(end.usage.num_device_cached_tokens + end.usage.num_host_cached_tokens, 0U);
}

// Guards: a pool too small for all streams preempts, and every stream has the tokens it has alone.
TEST(runtime_reset, tokens_do_not_depend_on_pressure) {
  live_options options;
  options.engine.num_device_blocks = 24;
  options.engine.max_model_len = 300;
  std::vector<generation_request> requests;
  std::vector<std::vector<token_id>> expected;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(greedy_request("stream " + std::to_string(i) + std::string(40, 'x'), 120));
    expected.push_back(reference_of(requests.back()));
  }
  auto engine = start_live(options).value();
  std::vector<std::shared_ptr<waiting_client>> clients;
  for (const auto& request : requests) clients.push_back(submit_to(*engine, request));
  for (std::size_t i = 0; i < clients.size(); ++i) {
    clients[i]->wait_for_end();
    EXPECT_EQ(clients[i]->tokens(), expected[i]) << "stream " << i;
  }
  EXPECT_GT(wait_until_idle(*engine).totals.preemptions_capacity, 0U);
}

}  // namespace
}  // namespace sluice::testing
