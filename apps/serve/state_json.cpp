// SPDX-License-Identifier: Apache-2.0
#include "serve/state_json.hpp"

#include <string_view>

namespace sluice::serve {
namespace {

using http::json;

template <class Id>
json values(const std::vector<Id>& ids) {
  auto list = json::array();
  for (const auto& id : ids) list.push_back(id.value);
  return list;
}

std::string_view name(request_phase phase) {
  switch (phase) {
    case request_phase::waiting: return "waiting";
    case request_phase::loading: return "loading";
    case request_phase::running: return "running";
    case request_phase::finished: return "finished";
  }
  return "unknown";
}

std::string_view name(waiting_reason reason) {
  switch (reason) {
    case waiting_reason::none: return "none";
    case waiting_reason::queued: return "queued";
    case waiting_reason::no_blocks: return "no_blocks";
    case waiting_reason::transfers_pending: return "transfers_pending";
    case waiting_reason::chunk_pending: return "chunk_pending";
    case waiting_reason::lookup_pending: return "lookup_pending";
    case waiting_reason::load_in_flight: return "load_in_flight";
    case waiting_reason::loads_held: return "loads_held";
    case waiting_reason::paused: return "paused";
  }
  return "unknown";
}

std::string_view name(control_state state) {
  switch (state) {
    case control_state::running: return "running";
    case control_state::pausing: return "pausing";
    case control_state::paused: return "paused";
    case control_state::sleeping: return "sleeping";
  }
  return "unknown";
}

std::string_view name(transfer_direction direction) {
  switch (direction) {
    case transfer_direction::load: return "load";
    case transfer_direction::store: return "store";
  }
  return "unknown";
}

json to_json(const cache_reset_report& cache) {
  const auto* unit = cache.cache == "device" ? "blocks" : "chunks";
  json entry{
      {"reset", cache.reset},
      {"dropped", {{unit, cache.num_dropped}, {"bytes", cache.num_dropped_bytes}}},
      {"held_by", {{"loads", values(cache.held_by_loads)}, {"running_requests", cache.held_by_running_requests}}},
      {"stores_in_flight", cache.num_stores_in_flight}};
  if (cache.is_unsupported) entry["unsupported"] = true;
  return entry;
}

json to_json(const request_snapshot& request) {
  return {{"id", request.id.value},
          {"phase", name(request.phase)},
          {"reason", name(request.reason)},
          {"attempt", request.attempt.value},
          {"num_tokens", request.num_tokens},
          {"num_computed_tokens", request.num_computed_tokens},
          {"num_blocks", request.num_blocks},
          {"loads", values(request.loads)},
          {"num_unsettled_stores", request.num_unsettled_stores}};
}

json to_json(const transfer_snapshot& transfer) {
  return {{"id", transfer.id.value},
          {"direction", name(transfer.direction)},
          {"request", transfer.request.value},
          {"created_in", transfer.created_in.value},
          {"num_blocks", transfer.num_blocks},
          {"num_waiters", transfer.num_waiters},
          {"is_given_up", transfer.is_given_up}};
}

struct total {
  std::string_view name;
  std::uint64_t engine_totals::*value;
};

#define SLUICE_TOTAL(field) \
  total { #field, &engine_totals::field }
constexpr total totals[] = {SLUICE_TOTAL(steps),
                            SLUICE_TOTAL(boundaries),
                            SLUICE_TOTAL(withdrawn_plans),
                            SLUICE_TOTAL(flushed_stores),
                            SLUICE_TOTAL(boundary_excluded_loads),
                            SLUICE_TOTAL(preemptions_capacity),
                            SLUICE_TOTAL(preemptions_priority),
                            SLUICE_TOTAL(preemptions_reset),
                            SLUICE_TOTAL(preemptions_pause),
                            SLUICE_TOTAL(prompt_tokens),
                            SLUICE_TOTAL(generation_tokens),
                            SLUICE_TOTAL(recomputed_tokens),
                            SLUICE_TOTAL(scheduled_tokens),
                            SLUICE_TOTAL(device_query_tokens),
                            SLUICE_TOTAL(device_hit_tokens),
                            SLUICE_TOTAL(host_query_tokens),
                            SLUICE_TOTAL(host_hit_tokens),
                            SLUICE_TOTAL(finished_stop),
                            SLUICE_TOTAL(finished_length),
                            SLUICE_TOTAL(finished_abort),
                            SLUICE_TOTAL(finished_error),
                            SLUICE_TOTAL(loads_ok),
                            SLUICE_TOTAL(loads_failed),
                            SLUICE_TOTAL(loads_stale),
                            SLUICE_TOTAL(loads_timed_out),
                            SLUICE_TOTAL(stores_ok),
                            SLUICE_TOTAL(stores_failed),
                            SLUICE_TOTAL(stores_stale),
                            SLUICE_TOTAL(stores_timed_out),
                            SLUICE_TOTAL(loaded_bytes),
                            SLUICE_TOTAL(stored_bytes),
                            SLUICE_TOTAL(device_evictions),
                            SLUICE_TOTAL(host_evictions),
                            SLUICE_TOTAL(refused_offers),
                            SLUICE_TOTAL(resets_device_success),
                            SLUICE_TOTAL(resets_device_refused),
                            SLUICE_TOTAL(resets_tiers_success),
                            SLUICE_TOTAL(resets_tiers_refused),
                            SLUICE_TOTAL(resets_all_success),
                            SLUICE_TOTAL(resets_all_refused),
                            SLUICE_TOTAL(load_actor_restarts), SLUICE_TOTAL(store_actor_restarts),
                            SLUICE_TOTAL(invariant_violations)};
#undef SLUICE_TOTAL

template <class Item>
json list_of(const std::vector<Item>& items) {
  auto list = json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

}  // namespace

http::json to_json(const std::vector<cache_reset_report>& caches) {
  auto all = json::object();
  for (const auto& cache : caches) all[cache.cache] = to_json(cache);
  return all;
}

http::json to_json(const reset_report& report) {
  return {{"success", report.success}, {"caches", to_json(report.caches)}};
}

http::json to_json(const engine_snapshot& state) {
  auto sums = json::object();
  for (const auto& entry : totals) sums[std::string{entry.name}] = state.totals.*entry.value;
  const auto& blocks = state.blocks;
  const auto& slots = state.slots;
  return {
      {"last_step", state.last_step.value},
      {"is_idle", state.is_idle},
      {"is_boundary_open", state.is_boundary_open},
      {"control", name(state.control)},
      {"requests", list_of(state.requests)},
      {"transfers", list_of(state.transfers)},
      {"blocks",
       {{"free", blocks.free}, {"cached", blocks.cached}, {"held", blocks.held}, {"quarantined", blocks.quarantined}}},
      {"slots",
       {{"free", slots.free},
        {"pending", slots.pending},
        {"ready", slots.ready},
        {"draining", slots.draining},
        {"pinned", slots.pinned}}},
      {"totals", std::move(sums)}};
}

}  // namespace sluice::serve
