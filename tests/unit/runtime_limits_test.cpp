// SPDX-License-Identifier: Apache-2.0
//
// What a request says about its order and about the caches reaches the engine.
#include <gtest/gtest.h>

#include <support/live_runtime.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using std::chrono::milliseconds;

struct runtime_limits : both_schedulings {
  runtime_limits() { options.engine.async_scheduling = GetParam(); }

  request_usage run(const generation_request& asked) {
    const auto usage = submit_to(*engine, asked)->wait_for_end().usage;
    wait_until_idle(*engine);
    return usage;
  }

  live_options options;
  generation_request request = greedy_request(std::string(100, 'a'), 4);
  std::unique_ptr<runtime> engine;
};

// Guards: of two that wait, the one with the lower number goes first although it came later.
TEST_P(runtime_limits, priority) {
  options.engine.scheduling = scheduling_policy::priority;
  options.engine.max_num_seqs = 1;
  options.model.min_step = milliseconds{3};
  engine = start_live(options).value();
  auto first = greedy_request("first", 40), last = greedy_request("last", 40), next = greedy_request("next", 40);
  first.priority = -9;
  last.priority = 5;
  next.priority = -5;
  const auto running = submit_to(*engine, first);
  ASSERT_TRUE(running->wait_for_tokens(1));
  const auto late = submit_to(*engine, last), early = submit_to(*engine, next);
  early->wait_for_end();
  EXPECT_EQ(late->num_ends(), 0);
  EXPECT_EQ(running->num_ends(), 1);
  late->wait_for_end();
}

// Guards: no more chunks are stored than the request allows.
TEST_P(runtime_limits, max_offload_tokens) {
  engine = start_live(options).value();
  request.max_offload_tokens = 40;
  run(request);
  EXPECT_EQ(snapshot_of(*engine).slots.ready, 2U);
  request.max_offload_tokens = 0;
  request.cache_salt = "other";
  run(request);
  EXPECT_EQ(snapshot_of(*engine).slots.ready, 2U);
}

// Guards: no more tokens are loaded than the request allows; the device's own hits do not count.
TEST_P(runtime_limits, max_load_tokens) {
  engine = start_live(options).value();
  run(request);
  for (const auto& [limit, loaded] :
       std::vector<std::pair<std::optional<std::uint32_t>, std::uint32_t>>{{0U, 0U}, {40U, 32U}, {std::nullopt, 96U}}) {
    ASSERT_TRUE(reset_and_wait(*engine, {}).success);
    request.max_load_tokens = limit;
    EXPECT_EQ(run(request).num_host_cached_tokens, loaded);
  }
  request.max_load_tokens = 0;
  EXPECT_EQ(run(request).num_device_cached_tokens, 96U);
}

// Guards: a request that does not read the caches computes everything, with the same tokens.
TEST_P(runtime_limits, read_prefix_cache) {
  engine = start_live(options).value();
  const auto client = submit_to(*engine, request);
  client->wait_for_end();
  wait_until_idle(*engine);
  auto blind = request;
  blind.read_prefix_cache = false;
  const auto other = submit_to(*engine, blind);
  const auto usage = other->wait_for_end().usage;
  EXPECT_EQ(usage.num_device_cached_tokens + usage.num_host_cached_tokens, 0U);
  EXPECT_EQ(other->tokens(), client->tokens());
  EXPECT_EQ(run(request).num_device_cached_tokens, 96U);
}

SLUICE_IN_BOTH_SCHEDULINGS(runtime_limits);

}  // namespace
}  // namespace sluice::testing
