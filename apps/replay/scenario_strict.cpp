// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>

#include "replay/errors.hpp"
#include "replay/live_stream.hpp"
#include "replay/scenario.hpp"

namespace sluice::replay {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t num_trials = 4;
constexpr std::uint32_t num_output_tokens = 64;
// Shorter than a block, so that this prompt never has a load; long enough to outlive the load of the others.
constexpr std::size_t bystander_prompt_tokens = 12;
constexpr std::uint32_t bystander_output_tokens = 192;
constexpr std::size_t prompt_of_whole_chunks = 1024;
constexpr std::size_t prompt_with_a_rest = 1017;
constexpr auto load_timeout = 3s;

struct trial_plan {
  std::size_t number = 0;
  bool is_flagged = false;
  completion_request request;
  completion_request bystander;
  std::vector<int> bystander_reference;
};

void require_reference(const std::string& who, const std::string& difference) {
  if (!difference.empty()) throw replay_error(who + ": " + difference);
}

/// Clears the device cache, starts all streams, posts the reset under the load. False when it missed the load.
bool run_attempt(const scenario_context& context, const trial_plan& plan, const std::vector<int>& reference,
                 trial_row& row) {
  const engine_client& engine = context.engine;
  engine.wait_until_idle();
  if (!engine.reset_device_cache(false).success) throw replay_error("an idle server refuses to reset its device cache");
  const engine_counters before = engine.counters();

  live_stream bystander(engine.http(), plan.bystander);
  bystander.wait_for_tokens(1, engine.http().timeout());
  live_stream first(engine.http(), plan.request), second(engine.http(), plan.request);
  const bool is_load_seen = engine.wait_for_load(load_timeout);
  const reset_reply reply = engine.reset_device_cache(plan.is_flagged);
  const bool has_met_load = is_load_seen && !reply.held_by_loads.empty() && !bystander.has_ended();
  if (!reply.held_by_loads.empty() && reply.success)
    throw replay_error("the reset reports success although a load holds the device cache");

  require_reference("first stream", difference(plan.request, first.finish(), reference));
  require_reference("second stream", difference(plan.request, second.finish(), reference));
  require_reference("unrelated stream", difference(plan.bystander, bystander.finish(), plan.bystander_reference));
  const engine_counters after = engine.counters();
  engine.check_health();
  if (!has_met_load) return false;
  if (after.preemptions != before.preemptions) throw replay_error("a refused reset preempted a running request");
  if (after.loaded_bytes <= before.loaded_bytes) throw replay_error("no bytes were loaded from the host tier");
  row.num_loaded_bytes = static_cast<std::uint64_t>(after.loaded_bytes - before.loaded_bytes);
  row.outcome = "reset refused, held by load " + std::to_string(reply.held_by_loads.front()) + "; streams equal";
  return true;
}

void run_trial(scenario_context& context, const trial_plan& plan) {
  trial_row row{.scenario = "strict", .number = plan.number, .kind = plan.is_flagged ? "flagged" : "control"};
  row.num_tokens = 2 * num_output_tokens + bystander_output_tokens;
  context.out.progress("strict", "trial " + std::to_string(plan.number) + ": reference for a prompt of " +
                                     std::to_string(plan.request.prompt.size()) + " tokens");
  const std::vector<int> reference = context.engine.complete(plan.request).tokens;
  for (row.num_attempts = 1; row.num_attempts <= max_attempts; ++row.num_attempts) {
    if (run_attempt(context, plan, reference, row)) return context.out.add(row);
    context.out.progress("strict", "the reset missed the load, once more");
  }
  throw replay_error("the reset missed the load " + std::to_string(max_attempts) + " times");
}

}  // namespace

void run_strict(scenario_context& context) {
  trial_plan plan;
  plan.bystander = {context.engine.model(), make_prompt(context.seed + 1, bystander_prompt_tokens),
                    bystander_output_tokens};
  plan.bystander_reference = context.engine.complete(plan.bystander).tokens;
  for (plan.number = 1; plan.number <= num_trials; ++plan.number) {
    const bool is_whole = (plan.number - 1) / 2 % 2 == 0;  // both kinds of trial get both lengths
    plan.is_flagged = plan.number % 2 == 1;
    plan.request = {
        context.engine.model(),
        make_prompt(context.seed + 100 + plan.number, is_whole ? prompt_of_whole_chunks : prompt_with_a_rest),
        num_output_tokens};
    run_trial(context, plan);
  }
}

}  // namespace sluice::replay
