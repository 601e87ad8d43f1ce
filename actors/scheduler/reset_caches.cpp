// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/reset_caches.hpp>

#include <algorithm>

#include <sluice/actors/rules.hpp>

namespace sluice::inline v0 {

namespace {

/// Running requests and loading ones whose loads have settled, the last in order first.
std::vector<request_id> running_requests(const scheduler_state& state) {
  std::vector<request_id> running;
  for (const auto* request : state.requests.active())
    if (state.ledger.loads_of(request->params.id).empty()) running.push_back(request->params.id);
  std::reverse(running.begin(), running.end());
  return running;
}

cache_reset_report reset_device(scheduler_state& state, const reset_scope& scope) {
  auto report = probe_device_reset(state, scope.preempts_running);
  if (!report.reset) return report;
  const bool stores = !scope.tiers && (state.config.preemption_offload || scope.cause == preemption_cause::pause);
  for (auto id : running_requests(state)) preempt(state, *state.requests.find(id), scope.cause, stores);
  report.num_dropped = state.pool.forget_all();
  state.events.device_cleared();
  report.num_dropped_bytes = report.num_dropped * state.config.kv.bytes_per_block;
  return report;
}

cache_reset_report reset_tier(scheduler_state& state, tier_index& tier) {
  cache_reset_report report;
  report.cache = tier.name();
  report.num_stores_in_flight = state.ledger.num_stores();
  const auto outcome = tier.reset();
  report.reset = outcome.result == tier_reset_outcome::verdict::reset;
  report.is_unsupported = outcome.result == tier_reset_outcome::verdict::unsupported;
  if (!report.reset) return report;
  report.num_dropped = outcome.num_dropped;
  report.num_dropped_bytes = outcome.num_dropped * state.config.kv.bytes_per_block * state.config.blocks_per_chunk;
  ++state.epoch.value;
  state.events.cleared(state.tier_place());
  for (auto direction : {transfer_direction::load, transfer_direction::store})
    for (auto id : state.ledger.ids(direction))
      if (holds(rule::settle_as_stale)) state.ledger.mark_stale(id);
  wake_all_chunk_waiters(state);
  wake_lookup_waiters(state);
  return report;
}

void count_reset(engine_totals& totals, const reset_scope& scope, bool success) {
  if (scope.device && scope.tiers)
    ++(success ? totals.resets_all_success : totals.resets_all_refused);
  else if (scope.device)
    ++(success ? totals.resets_device_success : totals.resets_device_refused);
  else if (scope.tiers)
    ++(success ? totals.resets_tiers_success : totals.resets_tiers_refused);
}

}  // namespace

cache_reset_report probe_device_reset(const scheduler_state& state, bool preempts_running) {
  cache_reset_report report;
  report.cache = "device";
  report.num_stores_in_flight = state.ledger.num_stores();
  report.held_by_loads = state.ledger.ids(transfer_direction::load);
  const auto num_running = running_requests(state).size();
  if (!preempts_running) report.held_by_running_requests = num_running;
  report.reset = report.held_by_loads.empty() && report.held_by_running_requests == 0;
  return report;
}

reset_report reset_caches(scheduler_state& state, const reset_scope& scope) {
  reset_report report;
  if (scope.device) report.caches.push_back(reset_device(state, scope));
  if (scope.tiers && state.tier) report.caches.push_back(reset_tier(state, *state.tier));
  report.success = std::all_of(report.caches.begin(), report.caches.end(), [](const auto& cache) { return cache.reset; });
  count_reset(state.totals, scope, report.success);
  return report;
}

}  // namespace sluice::inline v0
