// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <thread>

#include "replay/errors.hpp"
#include "replay/referenced_request.hpp"
#include "replay/scenario.hpp"

namespace sluice::replay {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t output_tokens = 64;
constexpr std::size_t num_tokens_before_pause = 8;
constexpr auto delivery_timeout = 5s;
constexpr auto silence = 150ms;  // some twenty steps
constexpr std::size_t chunk_tokens = 16;

/// A pause, or a sleep. What must hold of recomputed tokens follows from what is cleared: nothing is recomputed when
/// the device keeps its blocks, at most what was in no whole chunk when only the device gives them up, and everything
/// when both do.
struct stop_plan {
  std::string kind;
  int sleep_level = 0;  ///< 0: a pause
  bool clears_device = false;
  bool clears_tier = false;
};

const std::vector<stop_plan>& all_plans() {
  static const std::vector<stop_plan> plans{
      {"keep all", 0, false, false},     {"clear tier", 0, false, true},    {"clear device", 0, true, false},
      {"clear both", 0, true, true},     {"sleep 1, tier", 1, true, false}, {"sleep 1, none", 1, true, true},
      {"sleep 2, tier", 2, true, false}, {"sleep 2, none", 2, true, true},
  };
  return plans;
}

/// One that ends inside a block, one of whole blocks, one of little more than a block.
std::vector<referenced_request> make_requests(const scenario_context& context) {
  std::vector<referenced_request> requests;
  for (const std::size_t num_prompt_tokens : {250U, 512U, 20U})
    requests.push_back(make_referenced(
        context.engine, {context.engine.model(), make_prompt(context.seed + 600 + num_prompt_tokens, num_prompt_tokens),
                         output_tokens}));
  return requests;
}

double num_received(const std::list<live_stream>& streams) {
  double sum = 0;
  for (const live_stream& stream : streams) sum += static_cast<double>(stream.num_tokens());
  return sum;
}

/// What was sampled before the stop arrives; after that neither a step nor a token.
void check_silence(const engine_client& engine, const std::list<live_stream>& streams, double sampled_at_begin) {
  const engine_counters at_stop = engine.counters();
  const double expected = at_stop.sampled_tokens - sampled_at_begin;
  const auto deadline = std::chrono::steady_clock::now() + delivery_timeout;
  while (num_received(streams) < expected && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(2ms);
  std::this_thread::sleep_for(silence);
  const engine_counters later = engine.counters();
  if (later.steps != at_stop.steps || later.sampled_tokens != at_stop.sampled_tokens)
    throw replay_error("the stopped engine made " + count(later.steps - at_stop.steps) + " steps");
  if (num_received(streams) != expected)
    throw replay_error(count(num_received(streams)) + " tokens arrived, " + count(expected) + " were sampled");
  for (const live_stream& stream : streams)
    if (stream.has_ended()) throw replay_error("a stream ended while the engine was to keep it");
}

void stop(const engine_client& engine, const stop_plan& plan) {
  if (plan.sleep_level == 0) {
    engine.pause(plan.clears_device, plan.clears_tier);
  } else {
    engine.sleep(plan.sleep_level, plan.clears_tier);
  }
  if (!engine.is_paused()) throw replay_error("stopped, but is_paused says false");
  if (engine.is_sleeping() != (plan.sleep_level > 0)) throw replay_error("is_sleeping says the opposite");
  if (const int status = engine.http().get("/ready").status; status != 503)
    throw replay_error("stopped, but /ready gets " + std::to_string(status));
}

void go_on(const engine_client& engine, const stop_plan& plan) {
  if (plan.sleep_level == 0) {
    engine.resume();
  } else if (plan.sleep_level == 2) {
    if (engine.wake_up("weights")) throw replay_error("awake without a KV cache");
    if (!engine.is_sleeping()) throw replay_error("without a KV cache is_sleeping says false");
    if (!engine.wake_up("kv_cache")) throw replay_error("asleep with all memory");
  } else if (!engine.wake_up("weights,kv_cache")) {
    throw replay_error("asleep with all memory");
  }
  if (engine.is_paused() || engine.is_sleeping())
    throw replay_error("going on, but is_paused or is_sleeping says true");
}

void check_work(const stop_plan& plan, const std::vector<referenced_request>& requests, const engine_counters& before,
                const engine_counters& after) {
  const double num_preempted = after.pause_preemptions - before.pause_preemptions;
  const double recomputed = after.recomputed_tokens - before.recomputed_tokens;
  const auto num_requests = static_cast<double>(requests.size());
  if (after.preemptions - before.preemptions != num_preempted) throw replay_error("preempted for another reason");
  if (num_preempted != (plan.clears_device ? num_requests : 0))
    throw replay_error(count(num_preempted) + " of " + count(num_requests) + " streams were preempted");
  double least = 0, most = 0;
  if (plan.clears_device && plan.clears_tier) {
    for (const referenced_request& one : requests)
      least += static_cast<double>(one.request.prompt.size() + num_tokens_before_pause - 1);
    most = least + num_requests * output_tokens;
  } else if (plan.clears_device) {
    most = num_requests * (chunk_tokens - 1);
  }
  if (recomputed < least || recomputed > most)
    throw replay_error(count(recomputed) + " tokens recomputed, expected " + count(least) + " to " + count(most));
}

void run_trial(scenario_context& context, const std::vector<referenced_request>& requests, const stop_plan& plan,
               std::size_t number) {
  const engine_client& engine = context.engine;
  engine.wait_until_idle();
  engine.reset_all_caches();  // what is older than a reset of the tier never goes there, also not from the device
  const engine_counters before = engine.counters();
  auto streams = start_all(engine, requests);
  for (live_stream& stream : streams) stream.wait_for_tokens(num_tokens_before_pause, engine.http().timeout());
  stop(engine, plan);
  check_silence(engine, streams, before.sampled_tokens);
  go_on(engine, plan);
  finish_all(streams, requests);
  const engine_counters after = engine.counters();
  engine.check_health();
  check_work(plan, requests, before, after);
  context.out.add({.scenario = "pause-keep",
                   .number = number,
                   .kind = plan.kind,
                   .num_tokens = num_output_tokens(requests),
                   .num_loaded_bytes = static_cast<std::uint64_t>(after.loaded_bytes - before.loaded_bytes),
                   .outcome = count(after.pause_preemptions - before.pause_preemptions) + " preempted, " +
                              count(after.recomputed_tokens - before.recomputed_tokens) +
                              " tokens recomputed; silent while stopped; streams equal"});
}

}  // namespace

void run_pause_keep(scenario_context& context) {
  context.out.progress("pause-keep", "references");
  const std::vector<referenced_request> requests = make_requests(context);
  std::size_t number = 0;
  for (const stop_plan& plan : all_plans()) run_trial(context, requests, plan, ++number);
}

}  // namespace sluice::replay
