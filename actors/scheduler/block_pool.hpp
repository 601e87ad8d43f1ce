// SPDX-License-Identifier: Apache-2.0
//
// The device block pool: who holds which block, which blocks may be handed out next, and which content can be
// found in them. Owned by the scheduler.
//
// Every block but the null block is in exactly one state:
//
//   held         reference count > 0 (block tables and loads hold references)
//   free         no reference, no content; in the free list
//   cached       no reference, indexed content; in the free list, handed out after the free ones
//   quarantined  no reference, but a given-up store still reads it; in no list until that store settles
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

class block_pool {
 public:
  /// `num_blocks` includes the null block; at least 2.
  explicit block_pool(std::uint32_t num_blocks);

  std::uint32_t num_blocks() const { return static_cast<std::uint32_t>(blocks_.size()); }
  /// Blocks that can be handed out when nobody holds any.
  std::uint32_t num_usable() const { return num_blocks() - 1; }
  /// Blocks in the free list, cached ones included.
  std::uint32_t num_allocatable() const { return num_listed_; }
  block_counts counts() const;

  /// The block that holds this content, whoever holds the block.
  std::optional<block_id> find(const content_key& key) const;

  std::uint32_t num_references(block_id block) const { return blocks_[block.value].num_references; }
  bool is_indexed(block_id block) const { return blocks_[block.value].is_indexed; }
  /// Whether a given-up store reads it, held or not.
  bool is_quarantined(block_id block) const { return blocks_[block.value].num_quarantines > 0; }

  /// The free list in the order of handing out; null_block at its end.
  block_id first_allocatable() const { return block_id{blocks_[0].next}; }
  block_id next_allocatable(block_id block) const { return block_id{blocks_[block.value].next}; }

  /// Takes a block of the free list for writing: one reference, content forgotten. Returns whether content was
  /// lost by it (an eviction).
  bool allocate(block_id block);

  /// Adds a reference to a held or cached block.
  void share(block_id block);

  /// Drops a reference. The last one returns the block to the free list: without content to the front, with
  /// content to the back.
  void release(block_id block);

  /// Makes a held block's content findable, unless a block whose content is at least as new stands for `key`.
  void index(block_id block, const content_key& key, epoch_id epoch, group_id group = {});

  /// The epoch of an indexed block's content.
  epoch_id epoch(block_id block) const { return blocks_[block.value].epoch; }

  /// Called with the content of each block that ceases to be findable, but for `forget_all`.
  std::function<void(group_id, const content_key&)> on_forgotten;

  /// Makes the content of `block` unfindable; used when it was found wrong. A cached block becomes the first free one.
  void forget(block_id block);

  /// Forgets all content. Returns how many blocks lost theirs. Only when nobody holds a block.
  std::uint64_t forget_all();

  /// A given-up store still reads `block`: it is not handed out before the matching `unquarantine`. Counted.
  void quarantine(block_id block);
  void unquarantine(block_id block);

  /// What is inconsistent, in words; empty when all is well. Costs a pass over the pool.
  std::vector<std::string> check() const;

 private:
  struct block_state {
    std::uint32_t num_references = 0;
    std::uint32_t num_quarantines = 0;
    std::uint32_t previous = 0, next = 0;  // free list, circular through the null block
    bool is_listed = false;
    bool is_indexed = false;
    group_id group;
    content_key key{};
    epoch_id epoch;
  };

  void push_front(std::uint32_t block);
  void push_back(std::uint32_t block);
  void unlink(std::uint32_t block);
  void settle_unreferenced(std::uint32_t block);

  std::vector<block_state> blocks_;
  std::unordered_map<content_key, block_id> index_;
  std::uint32_t num_listed_ = 0;
  std::uint32_t num_cached_ = 0;
  std::uint32_t num_quarantined_ = 0;
};

}  // namespace sluice::inline v0
