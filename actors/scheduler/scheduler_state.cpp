// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/scheduler_state.hpp>

#include <algorithm>

namespace sluice::inline v0 {

scheduler_state::scheduler_state(scheduler_config scheduler_config, std::unique_ptr<tier_index> tier_or_null)
    : config(std::move(scheduler_config)), pool(config.num_device_blocks), tier(std::move(tier_or_null)) {
  for (std::uint16_t g = 0; g < config.num_groups(); ++g)
    hashers.emplace_back(content_identity{config.model.name, config.model.dtype, config.kv.bytes_per_block,
                                          config.block_size(g), group_id{g}});
}

void extend_keys(scheduler_state& state, request_record& request) {
  if (!state.config.enable_prefix_caching) return;
  for (std::size_t g = 0; g < request.groups.size(); ++g)
    state.hashers[g].extend(request.tokens, request.params.cache_salt, request.groups[g].keys);
}

void release_blocks(scheduler_state& state, request_record& request) {
  for (auto& group : request.groups) {
    for (auto block = group.table.rbegin(); block != group.table.rend(); ++block) state.pool.release(*block);
    group.table.clear();
    group.next_chunk_to_offer = 0;
    group.num_chunks_at_refusal = 0;
  }
  request.max_computed_tokens = std::max(request.max_computed_tokens, request.num_computed_tokens);
  request.num_computed_tokens = 0;
  request.num_dispatched_tokens = 0;
}

void preempt(scheduler_state& state, request_record& request, preemption_cause cause) {
  state.requests.apply(request, request_event::preempt);
  release_blocks(state, request);
  ++request.usage.num_preemptions;
  state.unreported_preemptions.push_back(request.params.id);
  switch (cause) {
    case preemption_cause::capacity: ++state.totals.preemptions_capacity; break;
    case preemption_cause::reset: ++state.totals.preemptions_reset; break;
  }
}

chunk_key key_of_chunk(const scheduler_state& state, const request_record& request, std::size_t group,
                       std::uint32_t chunk) {
  const auto last_block = (chunk + 1) * state.config.blocks_per_chunk - 1;
  return {request.groups[group].keys[last_block], group_id{static_cast<std::uint16_t>(group)}};
}

std::vector<block_copy> make_copies(std::uint32_t first, const std::vector<block_id>& blocks,
                                    const std::vector<slot_id>& slots, std::uint32_t blocks_per_chunk) {
  std::vector<block_copy> copies;
  const auto first_chunk = first / blocks_per_chunk;
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    const auto position = first + i;
    const auto slot = slots[position / blocks_per_chunk - first_chunk];
    if (!copies.empty()) {
      auto& last = copies.back();
      if (last.slot == slot && last.block.value + last.num_blocks == blocks[i].value) {
        ++last.num_blocks;
        continue;
      }
    }
    copies.push_back({slot, position % blocks_per_chunk, blocks[i], 1});
  }
  return copies;
}

}  // namespace sluice::inline v0
