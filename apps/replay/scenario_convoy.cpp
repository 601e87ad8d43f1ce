// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "replay/errors.hpp"
#include "replay/referenced_request.hpp"
#include "replay/scenario.hpp"

namespace sluice::replay {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t num_streams = 50;
constexpr std::uint32_t prefix_tokens = 10'000;  // whole blocks
constexpr std::size_t own_prompt_tokens = 8;
constexpr std::uint32_t output_tokens = 16;
constexpr std::size_t num_trials = 2;
constexpr auto load_timeout = 30s;

/// One prefix, and a few tokens of its own for each. Only the prefix may go to the host tier, so that nothing else
/// can be loaded from there.
std::vector<referenced_request> make_requests(const scenario_context& context) {
  const std::vector<int> prefix = make_prompt(context.seed + 500, prefix_tokens);
  std::vector<referenced_request> requests;
  for (std::size_t i = 0; i < num_streams; ++i) {
    completion_request request{context.engine.model(), prefix, output_tokens, prefix_tokens};
    const std::vector<int> own = make_prompt(context.seed + 501 + i, own_prompt_tokens);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    requests.push_back(make_referenced(context.engine, std::move(request)));
  }
  return requests;
}

/// Least, median and greatest.
std::string describe_first_tokens(const std::list<live_stream>& streams) {
  std::vector<std::int64_t> times;
  for (const live_stream& stream : streams) times.push_back(stream.time_to_first_token().value().count());
  std::ranges::sort(times);
  return "first tokens after " + std::to_string(times.front()) + ", " + std::to_string(times[times.size() / 2]) + ", " +
         std::to_string(times.back()) + " ms";
}

/// Not for a load in flight: on a slow machine it may have come and gone before all streams have started.
void wait_for_settled_load(const engine_client& engine, double num_before) {
  const auto end = std::chrono::steady_clock::now() + load_timeout;
  while (engine.counters().loads <= num_before) {
    if (std::chrono::steady_clock::now() >= end) throw replay_error("no load has settled");
    std::this_thread::sleep_for(5ms);
  }
}

void run_trial(scenario_context& context, const std::vector<referenced_request>& requests, double prefix_bytes,
               std::size_t number) {
  const engine_client& engine = context.engine;
  engine.wait_until_idle();
  if (!engine.reset_device_cache(false).success) throw replay_error("an idle server refuses to reset its device cache");
  const engine_counters before = engine.counters();
  auto streams = start_all(engine, requests);
  wait_for_settled_load(engine, before.loads);
  const double steps_at_load = engine.counters().steps;
  finish_all(streams, requests);
  engine.wait_until_idle();
  const engine_counters after = engine.counters();
  engine.check_health();

  const double num_loads = after.loads - before.loads, loaded = after.loaded_bytes - before.loaded_bytes;
  const double num_steps = after.steps - steps_at_load, num_hits = after.hit_tokens - before.hit_tokens;
  if (num_loads != 1) throw replay_error(count(num_loads) + " loads instead of one that all join");
  if (loaded != prefix_bytes)
    throw replay_error(count(loaded) + " bytes were loaded, the prefix has " + count(prefix_bytes));
  if (num_hits != double{num_streams} * prefix_tokens)
    throw replay_error(count(num_hits) + " prompt tokens were not computed, but found");
  // Steps before the load settles only admit. In a queue each stream needs one of its own for its first token.
  if (num_steps >= num_streams)
    throw replay_error(count(num_steps) + " steps after the load: the streams stood in a queue");
  context.out.add({.scenario = "convoy",
                   .number = number,
                   .kind = "host tier",
                   .num_tokens = num_output_tokens(requests),
                   .num_loaded_bytes = static_cast<std::uint64_t>(loaded),
                   .outcome = "1 load, " + count(num_steps) + " steps after it, " + describe_first_tokens(streams) +
                              " (least, median, greatest); streams equal"});
}

}  // namespace

void run_convoy(scenario_context& context) {
  context.out.progress("convoy", "references for a prefix of " + std::to_string(prefix_tokens) + " tokens");
  const double stored_before = context.engine.counters().stored_bytes;
  const std::vector<referenced_request> requests = make_requests(context);
  context.engine.wait_until_idle();
  const double prefix_bytes = context.engine.counters().stored_bytes - stored_before;
  for (std::size_t number = 1; number <= num_trials; ++number) run_trial(context, requests, prefix_bytes, number);
}

}  // namespace sluice::replay
