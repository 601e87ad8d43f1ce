// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sluice/actors/scheduler/pool_overlay.hpp>
#include <sluice/actors/scheduler/prefix_match.hpp>
#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>

namespace sluice::inline v0 {

/// The planner's account of blocks: those that can still be handed out, and those that requests which hold blocks
/// still need for tokens they know.
class plan_blocks {
 public:
  explicit plan_blocks(const scheduler_state& state) : state_(state), overlay_(state.pool) {}

  const pool_overlay& overlay() const { return overlay_; }
  std::uint32_t num_allocatable() const { return overlay_.num_allocatable(); }
  block_id allocate() { return overlay_.allocate(); }
  void share(std::span<const block_id> blocks) {
    for (auto block : blocks) overlay_.share(block);
  }
  void release(std::span<const block_id> blocks) {
    for (auto block : blocks) overlay_.release(block);
  }
  /// All blocks of the request, deepest first.
  void release(const request_record& request);

  /// Blocks that the request lacks to hold its first `num_tokens` tokens.
  std::uint32_t num_missing(const request_record& request, std::uint32_t num_tokens) const;

  /// How many of `num_tokens` tokens from `first` on fit into the request's blocks and the allocatable ones.
  std::uint32_t num_tokens_that_fit(const request_record& request, std::uint32_t first, std::uint32_t num_tokens) const;

  /// Not even alone, beside the quarantined blocks.
  bool cannot_ever_fit(const request_record& request) const;

  /// Starts the account of what active requests still need once `entries` have got theirs.
  void sum_outstanding(const std::vector<planned_entry>& entries);

  /// Allocatable blocks that nobody active needs.
  std::uint32_t num_available() const {
    const auto allocatable = num_allocatable();
    return allocatable > num_outstanding_ ? static_cast<std::uint32_t>(allocatable - num_outstanding_) : 0;
  }

  /// Whether all tokens that a waiting request knows fit, with what it matches, beside what active ones need.
  bool fits(const request_record& request, const prefix_match& match) const;

  /// The request is admitted and its loads have their targets: adds what it still needs.
  void expect(const request_record& request, const prefix_match& match);
  /// Of what was needed, `num_blocks` were handed out.
  void got(std::uint64_t num_blocks) { num_outstanding_ -= std::min(num_outstanding_, num_blocks); }

 private:
  std::uint64_t num_needed(const request_record& request, const prefix_match& match) const;

  const scheduler_state& state_;
  pool_overlay overlay_;
  std::uint64_t num_outstanding_ = 0;
};

}  // namespace sluice::inline v0
