// SPDX-License-Identifier: Apache-2.0
#include "coverage_counter.hpp"

#include <array>
#include <utility>

namespace sluice::simulation {

namespace {

constexpr std::array<std::string_view, 4> phase_names{"waiting", "loading", "running", "finished"};
constexpr std::array<std::string_view, 9> reason_names{"none",           "queued",         "no_blocks",
                                                       "transfers_pending", "chunk_pending", "lookup_pending",
                                                       "load_in_flight", "loads_held",     "paused"};
constexpr std::array<std::string_view, 4> control_names{"running", "pausing", "paused", "sleeping"};

struct total_field {
  std::string_view name;
  std::uint64_t engine_totals::* member;
};

constexpr total_field total_fields[] = {
    {"boundaries", &engine_totals::boundaries},
    {"withdrawn_plans", &engine_totals::withdrawn_plans},
    {"flushed_stores", &engine_totals::flushed_stores},
    {"boundary_excluded_loads", &engine_totals::boundary_excluded_loads},
    {"preemptions_capacity", &engine_totals::preemptions_capacity},
    {"preemptions_priority", &engine_totals::preemptions_priority},
    {"preemptions_reset", &engine_totals::preemptions_reset},
    {"preemptions_pause", &engine_totals::preemptions_pause},
    {"recomputed_tokens", &engine_totals::recomputed_tokens},
    {"device_hit_tokens", &engine_totals::device_hit_tokens},
    {"host_hit_tokens", &engine_totals::host_hit_tokens},
    {"loads_ok", &engine_totals::loads_ok},
    {"loads_failed", &engine_totals::loads_failed},
    {"loads_stale", &engine_totals::loads_stale},
    {"loads_timed_out", &engine_totals::loads_timed_out},
    {"stores_ok", &engine_totals::stores_ok},
    {"stores_failed", &engine_totals::stores_failed},
    {"stores_stale", &engine_totals::stores_stale},
    {"stores_timed_out", &engine_totals::stores_timed_out},
    {"device_evictions", &engine_totals::device_evictions},
    {"host_evictions", &engine_totals::host_evictions},
    {"refused_offers", &engine_totals::refused_offers},
    {"resets_device_success", &engine_totals::resets_device_success},
    {"resets_device_refused", &engine_totals::resets_device_refused},
    {"resets_tiers_success", &engine_totals::resets_tiers_success},
    {"resets_all_success", &engine_totals::resets_all_success},
    {"resets_all_refused", &engine_totals::resets_all_refused},
    {"load_actor_restarts", &engine_totals::load_actor_restarts},
    {"store_actor_restarts", &engine_totals::store_actor_restarts},
    {"finished_stop", &engine_totals::finished_stop},
    {"finished_length", &engine_totals::finished_length},
    {"finished_abort", &engine_totals::finished_abort},
    {"finished_error", &engine_totals::finished_error},
};

std::string name_of(request_phase phase) { return std::string(phase_names[static_cast<std::size_t>(phase)]); }

std::string transition(request_phase from, request_phase to) {
  return "request " + name_of(from) + " to " + name_of(to);
}

}  // namespace

void coverage_counter::look() {
  auto before = std::exchange(phases_, {});
  const auto now = engine_.snapshot();
  for (const auto& request : now.requests) {
    phases_[request.id] = request.phase;
    if (request.phase == request_phase::waiting)
      happened("waits for " + std::string(reason_names[static_cast<std::size_t>(request.reason)]));
    const auto known = before.extract(request.id);
    const auto from = known.empty() ? request_phase::waiting : known.mapped();
    if (from != request.phase) happened(transition(from, request.phase));
  }
  for (const auto& [id, phase] : before) happened(transition(phase, request_phase::finished));
  happened("engine " + std::string(control_names[static_cast<std::size_t>(now.control)]));
  if (now.is_boundary_open) happened("boundary open");
}

coverage coverage_counter::take() {
  const auto totals = engine_.numbers().totals;
  for (const auto& field : total_fields) seen_[std::string(field.name)] += totals.*field.member;
  return std::exchange(seen_, {});
}

const std::vector<std::string>& known_coverage() {
  static const auto all = [] {
    std::vector<std::string> names(event_names.begin(), event_names.end());
    for (const auto reason : reason_names)
      if (reason != "none" && reason != "load_in_flight" && reason != "lookup_pending")  // the host tier always knows
        names.push_back("waits for " + std::string(reason));
    using enum request_phase;
    for (const auto& [from, to] : {std::pair{waiting, running}, {waiting, loading}, {waiting, finished},
                                   {loading, running}, {loading, waiting}, {loading, finished},
                                   {running, waiting}, {running, finished}})
      names.push_back(transition(from, to));
    for (const auto state : control_names) names.push_back("engine " + std::string(state));
    for (const auto& field : total_fields) names.emplace_back(field.name);
    for (int i = 0; i < 5; ++i) names.push_back("control answer " + std::to_string(i));
    names.push_back("boundary open");
    names.push_back("errc out_of_blocks");
    names.push_back("errc device_failed");
    return names;
  }();
  return all;
}

}  // namespace sluice::simulation
