// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/scheduler_state.hpp>

#include <algorithm>
#include <utility>

#include <sluice/actors/rules.hpp>
#include <sluice/actors/scheduler/store_chunks.hpp>

namespace sluice::inline v0 {

scheduler_state::scheduler_state(scheduler_config scheduler_config, std::unique_ptr<tier_index> tier_or_null,
                                 engine_observer& engine_observer)
    : config(std::move(scheduler_config)), pool(config.num_device_blocks), requests(config.order),
      tier(std::move(tier_or_null)),
      events({config.records_kv_events, true, config.kv.groups, config.blocks_per_chunk}),
      sightings(config.num_tracked_sightings), observer(engine_observer) {
  for (std::uint16_t g = 0; g < config.num_groups(); ++g)
    hashers.emplace_back(content_identity{config.model.name, config.model.dtype, config.kv.bytes_per_block,
                                          config.block_size(g), group_id{g}});
  if (config.records_kv_events)
    pool.on_forgotten = [this](group_id group, const content_key& key) { events.device_removed(group, key); };
}

void extend_keys(scheduler_state& state, request_record& request) {
  if (!state.config.enable_prefix_caching) return;
  for (std::size_t g = 0; g < request.groups.size(); ++g)
    state.hashers[g].extend(request.tokens, request.params.cache_salt, request.groups[g].keys);
}

kv_sequence sequence_of(const request_record& request, std::size_t group) {
  return {group_id{static_cast<std::uint16_t>(group)}, request.groups[group].keys, request.tokens};
}

void release_blocks(scheduler_state& state, request_record& request) {
  for (auto& group : request.groups) {
    for (auto at = group.table.size(); at > group.num_passed; --at) state.pool.release(group.table[at - 1]);
    auto keys = std::move(group.keys);
    group = {};
    group.keys = std::move(keys);
  }
  request.max_computed_tokens = std::max(request.max_computed_tokens, request.num_computed_tokens);
  request.num_computed_tokens = 0;
  request.num_dispatched_tokens = 0;
  request.num_pending_tokens = 0;
}

void release_passed_blocks(scheduler_state& state, request_record& request) {
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto shape = state.config.shape(g);
    if (!shape.is_window()) continue;
    auto& group = request.groups[g];
    const auto first_read = shape.first_block_read_at(request.num_computed_tokens);
    const auto unit = holds(rule::keep_chunks_of_windows) ? shape.blocks_per_chunk : 1;
    for (const auto end = first_read / unit * unit; group.num_passed < end;
         ++group.num_passed)
      state.pool.release(std::exchange(group.table[group.num_passed], null_block));
  }
}

void preempt(scheduler_state& state, request_record& request, preemption_cause cause, bool stores_chunks) {
  if (stores_chunks) store_victim(state, request);
  state.requests.apply(request, request_event::preempt);
  release_blocks(state, request);
  ++request.usage.num_preemptions;
  state.unreported_preemptions.push_back(request.params.id);
  switch (cause) {
    case preemption_cause::capacity: ++state.totals.preemptions_capacity; break;
    case preemption_cause::priority: ++state.totals.preemptions_priority; break;
    case preemption_cause::reset: ++state.totals.preemptions_reset; break;
    case preemption_cause::pause: ++state.totals.preemptions_pause; break;
  }
}

namespace {

void wake_all(scheduler_state& state, const std::vector<request_id>& ids, waiting_reason reason) {
  if (!holds(rule::wake_waiters)) return;
  for (auto id : ids)
    if (auto* request = state.requests.find(id); request != nullptr && request->reason == reason)
      state.requests.wake(*request);
}

}  // namespace

void wake_chunk_waiters(scheduler_state& state, const chunk_key& chunk) {
  if (state.chunk_waiters.empty()) return;
  if (auto waiters = state.chunk_waiters.extract(chunk)) wake_all(state, waiters.mapped(), waiting_reason::chunk_pending);
}

void wake_all_chunk_waiters(scheduler_state& state) {
  for (const auto& [chunk, ids] : std::exchange(state.chunk_waiters, {}))
    wake_all(state, ids, waiting_reason::chunk_pending);
}

void wake_lookup_waiters(scheduler_state& state) {
  wake_all(state, std::exchange(state.lookup_waiters, {}), waiting_reason::lookup_pending);
}

void wake_store_waiter(scheduler_state& state, request_id id) {
  if (state.ledger.stores_of(id).empty()) wake_all(state, {id}, waiting_reason::transfers_pending);
}

chunk_key key_of_chunk(const scheduler_state& state, const request_record& request, std::size_t group,
                       std::uint32_t chunk) {
  const auto last_block = (chunk + 1) * state.config.blocks_per_chunk - 1;
  return {request.groups[group].keys[last_block], group_id{static_cast<std::uint16_t>(group)}};
}

void append_copies(std::vector<block_copy>& copies, group_id group, std::uint32_t first,
                   std::span<const block_id> blocks, std::span<const slot_id> slots, std::uint32_t blocks_per_chunk) {
  const auto first_chunk = first / blocks_per_chunk;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    const auto position = first + i;
    const auto slot = slots[position / blocks_per_chunk - first_chunk];
    if (!copies.empty()) {
      auto& last = copies.back();
      const bool goes_on = last.group == group && last.slot == slot &&
                           last.first_block_in_chunk + last.num_blocks == position % blocks_per_chunk &&
                           last.block.value + last.num_blocks == blocks[i].value;
      if (goes_on) {
        ++last.num_blocks;
        continue;
      }
    }
    copies.push_back({slot, position % blocks_per_chunk, blocks[i], 1, group});
  }
}

}  // namespace sluice::inline v0
