// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "replay/errors.hpp"
#include "replay/referenced_request.hpp"
#include "replay/scenario.hpp"

namespace sluice::replay {

namespace {

constexpr std::size_t num_streams = 16;
constexpr std::uint32_t output_tokens = 128;
constexpr std::size_t num_trials = 4;

/// Prompts of many chunks, most of which end inside one. Together they need several times the pool.
std::vector<referenced_request> make_requests(const scenario_context& context) {
  std::vector<referenced_request> requests;
  for (std::size_t i = 0; i < num_streams; ++i)
    requests.push_back(make_referenced(
        context.engine,
        {context.engine.model(), make_prompt(context.seed + 400 + i, 180 + 37 * (i % 5)), output_tokens}));
  return requests;
}

/// Cold: neither cache has anything. Warm: every prompt is on the host tier, so admissions load.
void run_trial(scenario_context& context, const std::vector<referenced_request>& requests, std::size_t number) {
  const engine_client& engine = context.engine;
  const bool is_cold = number % 2 == 1;
  engine.wait_until_idle();
  if (is_cold) {
    engine.reset_all_caches();
  } else if (!engine.reset_device_cache(false).success) {
    throw replay_error("an idle server refuses to reset its device cache");
  }
  const engine_counters before = engine.counters();
  auto streams = start_all(engine, requests);
  finish_all(streams, requests);
  engine.wait_until_idle();
  const engine_counters after = engine.counters();
  engine.check_health();

  const double num_preempted = after.capacity_preemptions - before.capacity_preemptions;
  const double num_loads = after.loads - before.loads;
  if (num_preempted == 0) throw replay_error("the pool was large enough: nobody was preempted");
  if (!is_cold && num_loads == 0) throw replay_error("prompts on the host tier were not loaded");
  context.out.add({.scenario = "pressure",
                   .number = number,
                   .kind = is_cold ? "cold" : "warm",
                   .num_tokens = num_output_tokens(requests),
                   .num_loaded_bytes = static_cast<std::uint64_t>(after.loaded_bytes - before.loaded_bytes),
                   .outcome = count(num_preempted) + " preempted, " + count(num_loads) + " loads, " +
                              count(after.recomputed_tokens - before.recomputed_tokens) +
                              " tokens recomputed; streams equal"});
}

}  // namespace

void run_pressure(scenario_context& context) {
  context.out.progress("pressure", "references, one stream at a time");
  const std::vector<referenced_request> requests = make_requests(context);
  for (std::size_t number = 1; number <= num_trials; ++number) run_trial(context, requests, number);
}

}  // namespace sluice::replay
