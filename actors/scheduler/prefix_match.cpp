// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/prefix_match.hpp>

#include <algorithm>

namespace sluice::inline v0 {

namespace {

void match_device(const scheduler_state& state, const pool_overlay& overlay, const std::vector<content_key>& keys,
                  std::uint32_t cap, prefix_match& match) {
  match.epoch = state.epoch;
  while (match.num_shared() < cap) {
    const auto block = state.pool.find(keys[match.num_shared()]);
    if (!block || !overlay.holds_content(*block)) return;
    match.device_blocks.push_back(*block);
    match.epoch = std::min(match.epoch, state.pool.epoch(*block));
  }
}

void match_loads(const scheduler_state& state, const planned_loading& planned, const std::vector<content_key>& keys,
                 std::uint32_t cap, prefix_match& match) {
  while (match.num_shared() < cap) {
    const auto& key = keys[match.num_shared()];
    auto loading = state.ledger.find_loading(key);
    if (auto found = planned.find(key); !loading && found != planned.end()) loading = found->second;
    if (!loading) return;
    match.joined_blocks.push_back(loading->block);
    if (std::find(match.joined_loads.begin(), match.joined_loads.end(), loading->load) == match.joined_loads.end())
      match.joined_loads.push_back(loading->load);
  }
}

void match_tier(const scheduler_state& state, const request_record& request, prefix_match& match) {
  const auto* tier = state.offload_tier();
  if (tier == nullptr) return;
  const auto factor = state.config.blocks_per_chunk;
  const auto num_chunks = static_cast<std::uint32_t>(request.groups[0].keys.size()) / factor;
  auto chunk = match.num_shared() / factor;
  while (chunk < num_chunks) {
    const auto key = key_of_chunk(state, request, 0, chunk);
    if (tier->lookup(key) != lookup_verdict::hit) break;
    match.tier_chunks.push_back(key);
    ++chunk;
  }
  if (!match.tier_chunks.empty()) match.num_tier_blocks = chunk * factor - match.num_shared();
}

}  // namespace

prefix_match match_prefix(const scheduler_state& state, const pool_overlay& overlay, const planned_loading& planned,
                          const request_record& request) {
  prefix_match match;
  match.epoch = state.epoch;
  if (!state.config.enable_prefix_caching) return match;
  const auto block_size = state.config.block_size(0);
  const auto& keys = request.groups[0].keys;
  const auto cap = (request.num_tokens() - 1) / block_size;
  match_device(state, overlay, keys, cap, match);
  match_loads(state, planned, keys, cap, match);
  if (match.num_shared() < cap || cap == 0) match_tier(state, request, match);
  const auto num_covered = (match.num_shared() + match.num_tier_blocks) * block_size;
  match.recomputes_last_block = match.num_tier_blocks > 0 && num_covered == request.num_tokens();
  match.num_computed_tokens = std::min(num_covered, request.num_tokens() - 1);
  return match;
}

}  // namespace sluice::inline v0
