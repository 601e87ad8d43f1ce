// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/reset_caches.hpp>

#include <algorithm>

namespace sluice::inline v0 {

namespace {

/// Running requests and loading ones whose loads have settled, youngest first.
std::vector<request_record*> running_requests(scheduler_state& state) {
  std::vector<request_record*> running;
  for (auto* request : state.requests.active())
    if (state.ledger.loads_of(request->params.id).empty()) running.push_back(request);
  std::reverse(running.begin(), running.end());
  return running;
}

cache_reset_report reset_device(scheduler_state& state, bool reset_running_requests) {
  cache_reset_report report;
  report.cache = "device";
  report.num_stores_in_flight = state.ledger.num_stores();
  report.held_by_loads = state.ledger.ids(transfer_direction::load);
  const auto running = running_requests(state);
  const bool is_held_by_running = !running.empty() && !reset_running_requests;
  if (is_held_by_running) report.held_by_running_requests = running.size();
  report.reset = report.held_by_loads.empty() && !is_held_by_running;
  if (!report.reset) return report;
  for (auto* request : running) preempt(state, *request, preemption_cause::reset);
  report.num_dropped = state.pool.forget_all();
  report.num_dropped_bytes = report.num_dropped * state.config.kv.bytes_per_block;
  return report;
}

cache_reset_report reset_tier(scheduler_state& state, tier_index& tier) {
  cache_reset_report report;
  report.cache = tier.name();
  report.num_stores_in_flight = state.ledger.num_stores();
  report.num_dropped = tier.reset();
  report.num_dropped_bytes = report.num_dropped * state.config.kv.bytes_per_block * state.config.blocks_per_chunk;
  report.reset = true;
  ++state.epoch.value;
  for (auto direction : {transfer_direction::load, transfer_direction::store})
    for (auto id : state.ledger.ids(direction)) state.ledger.mark_stale(id);
  return report;
}

}  // namespace

reset_report reset_caches(scheduler_state& state, const reset_prefix_cache& command) {
  reset_report report;
  report.caches.push_back(reset_device(state, command.reset_running_requests));
  if (command.reset_external && state.tier) report.caches.push_back(reset_tier(state, *state.tier));
  report.success = std::all_of(report.caches.begin(), report.caches.end(), [](const auto& cache) { return cache.reset; });
  auto& totals = state.totals;
  if (command.reset_external)
    ++(report.success ? totals.resets_all_success : totals.resets_all_refused);
  else
    ++(report.success ? totals.resets_device_success : totals.resets_device_refused);
  return report;
}

}  // namespace sluice::inline v0
