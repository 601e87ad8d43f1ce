// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <sluice/actors/scheduler/pool_overlay.hpp>
#include <sluice/actors/scheduler/scheduler_state.hpp>

namespace sluice::inline v0 {

/// The cached content that a request would start from, for one full-attention group: a run of device blocks, then a
/// run of blocks under loads in flight, then a run of chunks in the tier.
struct prefix_match {
  std::vector<block_id> device_blocks;
  std::vector<block_id> joined_blocks;
  std::vector<transfer_id> joined_loads;  ///< in the order met, each once
  std::vector<chunk_key> tier_chunks;     ///< from the chunk that block `num_shared()` is in
  std::uint32_t num_tier_blocks = 0;      ///< blocks [num_shared(), num_shared() + num_tier_blocks)
  std::uint32_t num_computed_tokens = 0;  ///< tokens that need no computing once the loads have settled
  bool recomputes_last_block = false;     ///< the tier covers every token: the last one is computed again in place
  epoch_id epoch;                         ///< of the oldest device content; the current one without any

  std::uint32_t num_shared() const { return static_cast<std::uint32_t>(device_blocks.size() + joined_blocks.size()); }
};

/// Blocks under loads that the plan in the making creates, by content.
using planned_loading = std::unordered_map<content_key, loading_block>;

/// Looks `request` up. Device and joined blocks cover at most floor((num_tokens - 1) / block_size) blocks; if they
/// reach that, nothing is loaded. Only content that `overlay` still holds counts.
prefix_match match_prefix(const scheduler_state& state, const pool_overlay& overlay, const planned_loading& planned,
                          const request_record& request);

}  // namespace sluice::inline v0
