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

  bool is_allocatable(block_id block) const { return num_references(block) == 0; }

  /// The content can be found in a block that the plan has not given away.
  bool holds_content(block_id block) const { return !rewritten_.contains(block); }

  /// The next block in the order of eviction. Only while there is one.
  block_id allocate();

  void share(block_id block);
  void release(block_id block);

 private:
  std::uint32_t num_references(block_id block) const;

  const block_pool& pool_;
  std::unordered_map<block_id, std::uint32_t> references_;   // of blocks the plan touched
  std::unordered_set<block_id> rewritten_;                   // handed out for writing by the plan
  std::vector<block_id> released_front_;                     // without content, last one first
  std::deque<block_id> released_back_;                       // with content
  block_id cursor_;                                          // in the pool's free list
  std::uint32_t num_allocatable_;
};

}  // namespace sluice::inline v0
