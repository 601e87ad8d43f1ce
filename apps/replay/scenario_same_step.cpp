// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>

#include "replay/errors.hpp"
#include "replay/live_stream.hpp"
#include "replay/scenario.hpp"

namespace sluice::replay {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t num_trials = 3;
constexpr std::size_t num_prompt_tokens = 512;
constexpr std::uint32_t num_output_tokens = 96;
constexpr std::size_t num_tokens_before_reset = 8;
constexpr auto quiet_timeout = 2s;

struct referenced_request {
  completion_request request;
  std::vector<int> reference;
  double prompt_bytes = 0;  ///< at most the KV of the prompt's whole blocks
};

/// Runs a prompt that the server has not seen, so that every block of it is stored now and none before.
referenced_request make_reference(const scenario_context& context, std::uint64_t seed) {
  const engine_client& engine = context.engine;
  referenced_request result;
  result.request = {engine.model(), make_prompt(context.seed + seed, num_prompt_tokens), num_output_tokens};
  engine.wait_until_idle();
  const engine_counters before = engine.counters();
  result.reference = engine.complete(result.request).tokens;
  engine.wait_until_idle();
  const double stored = engine.counters().stored_bytes - before.stored_bytes;
  if (stored <= 0) throw replay_error("running a new prompt stored nothing on the host tier");
  result.prompt_bytes = stored * num_prompt_tokens / (num_prompt_tokens + num_output_tokens);
  return result;
}

/// False when the reset was refused, met a transfer, or its boundary had no load of the same step to leave alone.
bool run_attempt(const scenario_context& context, const referenced_request& one, const referenced_request& other,
                 trial_row& row) {
  const engine_client& engine = context.engine;
  engine.wait_until_idle();
  live_stream first(engine.http(), one.request), second(engine.http(), other.request);
  first.wait_for_tokens(num_tokens_before_reset, engine.http().timeout());
  second.wait_for_tokens(num_tokens_before_reset, engine.http().timeout());
  const bool is_quiet = engine.wait_for_no_transfer(quiet_timeout);
  const engine_counters before = engine.counters();
  const reset_reply reply = engine.reset_device_cache(true);
  if (reply.success && reply.held_by_loads.size() > 0) throw replay_error("a reset succeeded under a load");

  const std::string first_reason = difference(one.request, first.finish(), one.reference);
  if (!first_reason.empty()) throw replay_error("first stream: " + first_reason);
  const std::string second_reason = difference(other.request, second.finish(), other.reference);
  if (!second_reason.empty()) throw replay_error("second stream: " + second_reason);
  engine.check_health();
  const engine_counters after = engine.counters();
  const bool has_met_stores = !is_quiet || reply.num_stores_in_flight > 0;
  if (has_met_stores || !reply.success || after.excluded_loads <= before.excluded_loads) return false;

  if (after.reset_preemptions <= before.reset_preemptions) throw replay_error("the reset preempted nobody");
  const double loaded = after.loaded_bytes - before.loaded_bytes;
  const double num_excluded = after.excluded_loads - before.excluded_loads;
  if (loaded < num_excluded * one.prompt_bytes) throw replay_error("the resumed request did not load its blocks");
  row.num_loaded_bytes = static_cast<std::uint64_t>(loaded);
  row.outcome = std::to_string(static_cast<int>(after.reset_preemptions - before.reset_preemptions)) + " preempted, " +
                std::to_string(static_cast<int>(num_excluded)) + " loads left out of the flush; streams equal";
  return true;
}

void run_trial(scenario_context& context, std::size_t number) {
  trial_row row{.scenario = "same-step", .number = number, .kind = "flagged"};
  row.num_tokens = 2 * num_output_tokens;
  context.out.progress("same-step", "trial " + std::to_string(number) + ": references");
  const referenced_request one = make_reference(context, 300 + 2 * number);
  const referenced_request other = make_reference(context, 301 + 2 * number);
  for (row.num_attempts = 1; row.num_attempts <= max_attempts; ++row.num_attempts) {
    if (run_attempt(context, one, other, row)) return context.out.add(row);
    context.out.progress("same-step", "the reset met a transfer, or no load was created in its step: once more");
  }
  throw replay_error("no step reported a preemption and created a load in " + std::to_string(max_attempts) +
                     " attempts");
}

}  // namespace

void run_same_step(scenario_context& context) {
  for (std::size_t number = 1; number <= num_trials; ++number) run_trial(context, number);
}

}  // namespace sluice::replay
