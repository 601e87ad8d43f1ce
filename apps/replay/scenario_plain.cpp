// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "replay/errors.hpp"
#include "replay/referenced_request.hpp"
#include "replay/scenario.hpp"

namespace sluice::replay {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t num_trials = 10;
constexpr std::uint32_t num_output_per_stream = 48;

/// Two requests on one prompt, one whose prompt ends inside a block, one too short for a block.
std::vector<referenced_request> make_requests(const scenario_context& context) {
  const auto make = [&](std::uint64_t seed, std::size_t num_prompt_tokens) {
    return make_referenced(context.engine, {context.engine.model(), make_prompt(context.seed + seed, num_prompt_tokens),
                                            num_output_per_stream});
  };
  std::vector<referenced_request> requests{make(201, 512), make(202, 250), make(203, 10)};
  requests.push_back(requests.front());
  return requests;
}

std::string describe(const reset_reply& reply) {
  if (reply.success) return "reset done";
  return "reset refused, held by " + std::to_string(reply.held_by_loads.size()) + " loads and " +
         std::to_string(reply.held_by_running_requests) + " running requests";
}

}  // namespace

void run_plain(scenario_context& context) {
  context.out.progress("plain", "references");
  const std::vector<referenced_request> requests = make_requests(context);
  const auto begin = clock::now();
  auto warm_up = start_all(context.engine, requests);
  finish_all(warm_up, requests);
  const auto duration = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - begin);

  std::mt19937_64 random(context.seed);
  for (std::size_t number = 1; number <= num_trials; ++number) {
    const bool is_flagged = number % 2 == 1;
    const std::chrono::microseconds moment(random() % static_cast<std::uint64_t>(duration.count() + 1));
    const double loaded_before = context.engine.counters().loaded_bytes;
    auto streams = start_all(context.engine, requests);
    std::this_thread::sleep_for(moment);
    const reset_reply reply = context.engine.reset_device_cache(is_flagged);
    finish_all(streams, requests);
    context.engine.check_health();
    context.out.add(
        {.scenario = "plain",
         .number = number,
         .kind = is_flagged ? "flagged" : "control",
         .num_tokens = num_output_tokens(requests),
         .num_loaded_bytes = static_cast<std::uint64_t>(context.engine.counters().loaded_bytes - loaded_before),
         .outcome = describe(reply) + " after " + std::to_string(moment.count() / 1000) + " ms; streams equal"});
  }
}

}  // namespace sluice::replay
