// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <sluice/actors/scheduler/pool_overlay.hpp>
#include <sluice/actors/scheduler/scheduler_state.hpp>

namespace sluice::inline v0 {

/// What a match offers in one group, as positions in the sequence's block table.
struct group_match {
  std::uint32_t num_passed = 0;          ///< leading blocks that the window has passed
  std::vector<block_id> shared;          ///< blocks [num_passed, num_passed + size): on the device or under loads
  std::uint32_t first_loaded = 0;        ///< blocks [first_loaded, first_loaded + num_loaded) come from the tier
  std::uint32_t num_loaded = 0;
  std::vector<chunk_key> tier_chunks;    ///< from the chunk that `first_loaded` is in
};

/// The cached content that a request would start from: leading tokens in blocks of the device, then in blocks under
/// loads in flight, then in chunks of the tier; the same number of tokens in every group.
struct prefix_match {
  std::vector<group_match> groups;
  std::vector<transfer_id> joined_loads;  ///< in the order met, each once
  std::uint32_t num_device_tokens = 0;    ///< covered by the device alone
  std::uint32_t num_computed_tokens = 0;  ///< need no computing once the loads have settled
  epoch_id epoch;                         ///< of the oldest device content; the current one without any
  /// chunk_pending or lookup_pending: the answer is not known yet, and nothing else is filled in.
  waiting_reason wait = waiting_reason::none;
  std::optional<chunk_key> awaited;       ///< of chunk_pending: settles last
  std::optional<content_key> missing;     ///< the first block of group 0 that is neither shared nor loaded

  bool loads() const {
    return std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.num_loaded > 0; });
  }
};

/// Blocks under loads that the plan in the making creates, by content.
using planned_loading = std::unordered_map<content_key, loading_block>;

/// Looks `request` up. Shared blocks end where whole blocks of every group end, and before the last token; if they
/// reach that, nothing is loaded. What is loaded may end anywhere: tokens of its last blocks that are not covered in
/// every group, or that are the last token, are computed again in place. A window group needs the blocks that the next
/// token reads, and no others. Only content that `overlay` still holds counts.
prefix_match match_prefix(const scheduler_state& state, const pool_overlay& overlay, const planned_loading& planned,
                          const request_record& request);

}  // namespace sluice::inline v0
