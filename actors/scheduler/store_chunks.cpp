// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/store_chunks.hpp>

#include <algorithm>
#include <span>

#include <sluice/actors/rules.hpp>

#include <sluice/actors/scheduler/window_reach.hpp>

namespace sluice::inline v0 {

namespace {

struct candidate {
  std::size_t group;
  std::uint32_t chunk;
};

/// Chunks to offer, and how far each group's cursor goes when the offer is accepted.
struct offer_list {
  std::vector<candidate> chunks;
  std::vector<chunk_key> keys;
  std::vector<std::uint32_t> cursors;

  void add(const scheduler_state& state, const request_record& request, candidate found) {
    chunks.push_back(found);
    keys.push_back(key_of_chunk(state, request, found.group, found.chunk));
  }
};

window_reach reach_for(const scheduler_state& state, std::size_t g, std::optional<std::uint32_t> interval) {
  const auto shape = state.config.shape(g);
  return {shape.window_tokens, shape.tokens_per_chunk(), state.config.chunk_alignment(), interval};
}

/// What may be done with a chunk of the group now. Of full attention every chunk can be hit.
unit_reach reach_of_chunk(const scheduler_state& state, const request_record& request, candidate at,
                          std::optional<std::uint32_t> interval) {
  const auto shape = state.config.shape(at.group);
  if (!shape.is_window()) return unit_reach::reachable;
  if (at.chunk * shape.blocks_per_chunk < request.groups[at.group].num_passed) return unit_reach::never;
  return reach_of(reach_for(state, at.group, interval), at.chunk, request.num_prompt_tokens(),
                  request.num_computed_tokens);
}

std::uint32_t num_complete_chunks(const scheduler_state& state, const request_record& request, std::size_t g,
                                  std::uint32_t max_tokens) {
  const auto num_tokens = std::min({request.num_computed_tokens, request.params.max_offload_tokens, max_tokens});
  const auto num_keyed = static_cast<std::uint32_t>(request.groups[g].keys.size()) / state.config.blocks_per_chunk;
  return std::min(num_tokens / state.config.tokens_per_chunk(g), num_keyed);
}

std::uint32_t max_offered_tokens(const scheduler_state& state, const request_record& request) {
  return state.config.offload_prompt_only ? request.num_prompt_tokens() : no_token_limit;
}

bool is_wanted(const scheduler_state& state, const request_record& request, candidate at) {
  const auto& group = request.groups[at.group];
  const bool came_from_tier = at.chunk >= group.first_loaded_chunk && at.chunk < group.end_loaded_chunk;
  if (came_from_tier && state.config.storing == store_policy::incremental) return false;
  return state.config.store_threshold <= 1 ||
         state.sightings.count(key_of_chunk(state, request, at.group, at.chunk)) >= state.config.store_threshold;
}

/// False when an earlier refusal of the group should not be tried again before something changes.
bool collect(const scheduler_state& state, const request_record& request, std::size_t g, bool is_ending,
             offer_list& list) {
  const auto& group = request.groups[g];
  const auto num_complete = num_complete_chunks(state, request, g, max_offered_tokens(state, request));
  auto& cursor = list.cursors.emplace_back(group.next_chunk_to_offer);
  if (num_complete <= group.num_chunks_at_refusal && !is_ending) return false;
  for (; cursor < num_complete; ++cursor) {
    const candidate at{g, cursor};
    const auto reach = reach_of_chunk(state, request, at, state.config.retention_interval);
    if (reach == unit_reach::not_yet) break;
    if (reach == unit_reach::reachable && is_wanted(state, request, at)) list.add(state, request, at);
  }
  return true;
}

transfer_job create_store(scheduler_state& state, const request_record& request, const offer_list& list,
                          const offer_outcome& outcome) {
  transfer_record record;
  record.id = state.ledger.next_id();
  record.direction = transfer_direction::store;
  record.request = request.params.id;
  record.created_in = state.last_step;
  record.epoch = state.epoch;
  const auto factor = state.config.blocks_per_chunk;
  for (const auto& accepted : outcome.accepted) {
    const auto [g, chunk] = list.chunks[accepted.position];
    const auto first = chunk * factor;
    const auto blocks = std::span(request.groups[g].table).subspan(first, factor);
    append_copies(record.copies, group_id{static_cast<std::uint16_t>(g)}, first, blocks, std::span(&accepted.slot, 1),
                  factor);
    record.blocks.insert(record.blocks.end(), blocks.begin(), blocks.end());
    record.slots.push_back(accepted.slot);
    record.chunks.push_back(list.keys[accepted.position]);
    state.events.describe(sequence_of(request, g), chunk);
    if (state.config.matches_chunk_beginnings())
      state.offload_tier()->describe(accepted.slot, std::span(request.groups[g].keys).subspan(first, factor - 1));
  }
  return state.ledger.add(std::move(record)).job();
}

bool can_offer(const scheduler_state& state, const request_record& request) {
  if (state.offload_tier() == nullptr) return false;
  return request.epoch == state.epoch || !holds(rule::offer_current_epoch);
}

/// False when the tier refused.
bool offer(scheduler_state& state, const request_record& request, const offer_list& list,
           std::vector<transfer_job>& stores) {
  const auto outcome = state.offload_tier()->offer(list.keys);
  state.totals.host_evictions += outcome.evicted.size();
  state.events.removed(state.tier_place(), outcome.evicted);
  if (!outcome.accepted.empty()) stores.push_back(create_store(state, request, list, outcome));
  state.totals.refused_offers += outcome.is_refused;
  return !outcome.is_refused;
}

}  // namespace

void store_complete_chunks(scheduler_state& state, request_record& request, bool is_ending,
                           std::vector<transfer_job>& stores) {
  if (!can_offer(state, request) || state.config.offload != offload_scope::all) return;
  offer_list list;
  for (std::size_t g = 0; g < request.groups.size(); ++g) collect(state, request, g, is_ending, list);
  const bool is_accepted = list.keys.empty() || offer(state, request, list, stores);
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    auto& group = request.groups[g];
    if (is_accepted)
      group.next_chunk_to_offer = list.cursors[g];
    else
      group.num_chunks_at_refusal = num_complete_chunks(state, request, g, max_offered_tokens(state, request));
  }
}

void store_victim(scheduler_state& state, const request_record& request) {
  if (!can_offer(state, request)) return;
  offer_list list;
  for (std::size_t g = 0; g < request.groups.size(); ++g)
    for (std::uint32_t chunk = 0; chunk < num_complete_chunks(state, request, g, no_token_limit); ++chunk)
      if (reach_of_chunk(state, request, {g, chunk}, std::nullopt) == unit_reach::reachable)
        list.add(state, request, {g, chunk});
  if (!list.keys.empty()) offer(state, request, list, state.victim_stores);
}

}  // namespace sluice::inline v0
