// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <sluice/actors/scheduler/block_pool.hpp>

namespace sluice::inline v0 {

/// The block pool as it will be once a plan in the making is applied. Copies nothing of the pool: it keeps what the
/// plan changes and walks the pool's free list once. The pool must not change while the overlay lives.
class pool_overlay {
 public:
  explicit pool_overlay(const block_pool& pool);

  /// Blocks that can still be handed out.
  std::uint32_t num_allocatable() const { return num_allocatable_; }

  bool is_allocatable(block_id block) const { return num_references(block) == 0 && !pool_.is_quarantined(block); }

  /// The content can be found in a block that the plan has not given away.
  bool holds_content(block_id block) const { return !rewritten_.contains(block); }

  /// The next block in the order of eviction. Only while there is one.
  block_id allocate();

  void share(block_id block);
  void release(block_id block);

 private:
  struct touched_block {
    std::uint32_t num_references = 0;
    std::uint32_t last_release = 0;  // which entry of the released lists is its place
  };
  struct released_block {
    block_id block;
    std::uint32_t release = 0;
  };

  std::uint32_t num_references(block_id block) const;
  bool is_in_place(const released_block& released) const;

  const block_pool& pool_;
  std::unordered_map<block_id, touched_block> touched_;  // blocks the plan took, shared or released
  std::unordered_set<block_id> rewritten_;               // handed out for writing by the plan
  std::vector<released_block> released_front_;           // without content, last one first
  std::deque<released_block> released_back_;             // with content
  block_id cursor_;                                      // in the pool's free list
  std::uint32_t num_allocatable_;
  std::uint32_t num_releases_ = 0;
};

}  // namespace sluice::inline v0
