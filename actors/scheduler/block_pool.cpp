// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/block_pool.hpp>

#include <cassert>

namespace sluice::inline v0 {

block_pool::block_pool(std::uint32_t num_blocks) : blocks_(num_blocks) {
  assert(num_blocks >= 2);
  for (std::uint32_t b = 1; b < num_blocks; ++b) push_back(b);
}

block_counts block_pool::counts() const {
  block_counts counts;
  counts.cached = num_cached_;
  counts.free = num_listed_ - num_cached_;
  counts.quarantined = num_quarantined_;
  counts.held = num_usable() - num_listed_ - num_quarantined_;
  return counts;
}

std::optional<block_id> block_pool::find(const content_key& key) const {
  auto found = index_.find(key);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

bool block_pool::allocate(block_id id) {
  auto& block = blocks_[id.value];
  assert(block.is_listed && block.num_references == 0);
  unlink(id.value);
  const bool evicts = block.is_indexed;
  if (evicts) forget(id);
  block.num_references = 1;
  return evicts;
}

void block_pool::share(block_id id) {
  auto& block = blocks_[id.value];
  if (block.is_listed) unlink(id.value);
  assert(block.num_references > 0 || block.is_indexed);
  ++block.num_references;
}

void block_pool::release(block_id id) {
  auto& block = blocks_[id.value];
  assert(block.num_references > 0);
  if (--block.num_references == 0) settle_unreferenced(id.value);
}

void block_pool::index(block_id id, const content_key& key, epoch_id epoch, group_id group) {
  auto& block = blocks_[id.value];
  assert(block.num_references > 0);
  if (block.is_indexed) return;
  if (auto other = find(key)) {
    if (blocks_[other->value].epoch >= epoch) return;
    forget(*other);
  }
  index_.emplace(key, id);
  block.is_indexed = true;
  block.key = key;
  block.group = group;
  block.epoch = epoch;
}

void block_pool::forget(block_id id) {
  auto& block = blocks_[id.value];
  if (!block.is_indexed) return;
  index_.erase(block.key);
  if (on_forgotten) on_forgotten(block.group, block.key);
  const bool is_cached = block.is_listed;
  if (is_cached) unlink(id.value);
  block.is_indexed = false;
  if (is_cached) push_front(id.value);
}

std::uint64_t block_pool::forget_all() {
  const auto num_forgotten = index_.size();
  for (const auto& [key, id] : index_) blocks_[id.value].is_indexed = false;
  index_.clear();
  num_cached_ = 0;
  return num_forgotten;
}

void block_pool::quarantine(block_id id) {
  auto& block = blocks_[id.value];
  if (++block.num_quarantines > 1 || block.num_references > 0) return;
  forget(id);
  if (block.is_listed) unlink(id.value);
  ++num_quarantined_;
}

void block_pool::unquarantine(block_id id) {
  auto& block = blocks_[id.value];
  assert(block.num_quarantines > 0);
  if (--block.num_quarantines > 0 || block.num_references > 0) return;
  --num_quarantined_;
  push_front(id.value);
}

void block_pool::settle_unreferenced(std::uint32_t id) {
  auto& block = blocks_[id];
  if (block.num_quarantines > 0) {
    forget(block_id{id});
    ++num_quarantined_;
  } else if (block.is_indexed) {
    push_back(id);
  } else {
    push_front(id);
  }
}

void block_pool::push_front(std::uint32_t id) {
  auto& block = blocks_[id];
  block.previous = 0;
  block.next = blocks_[0].next;
  blocks_[block.next].previous = id;
  blocks_[0].next = id;
  block.is_listed = true;
  ++num_listed_;
  if (block.is_indexed) ++num_cached_;
}

void block_pool::push_back(std::uint32_t id) {
  auto& block = blocks_[id];
  block.next = 0;
  block.previous = blocks_[0].previous;
  blocks_[block.previous].next = id;
  blocks_[0].previous = id;
  block.is_listed = true;
  ++num_listed_;
  if (block.is_indexed) ++num_cached_;
}

void block_pool::unlink(std::uint32_t id) {
  auto& block = blocks_[id];
  blocks_[block.previous].next = block.next;
  blocks_[block.next].previous = block.previous;
  block.is_listed = false;
  --num_listed_;
  if (block.is_indexed) --num_cached_;
}

std::vector<std::string> block_pool::check() const {
  std::vector<std::string> faults;
  auto fault = [&](std::uint32_t id, const char* what) {
    faults.push_back("block " + std::to_string(id) + " " + what);
  };
  std::uint32_t num_listed = 0, num_cached = 0, num_quarantined = 0, num_indexed = 0;
  for (std::uint32_t id = 1; id < num_blocks(); ++id) {
    const auto& block = blocks_[id];
    const bool is_quarantined = block.num_references == 0 && block.num_quarantines > 0;
    if (block.is_listed && block.num_references > 0) fault(id, "is in the free list and referenced");
    if (block.is_listed && is_quarantined) fault(id, "is in the free list and quarantined");
    if (!block.is_listed && block.num_references == 0 && !is_quarantined) fault(id, "is in no state");
    num_listed += block.is_listed;
    num_cached += block.is_listed && block.is_indexed;
    num_quarantined += is_quarantined;
    num_indexed += block.is_indexed;
    if (block.is_indexed) {
      auto found = index_.find(block.key);
      if (found == index_.end() || found->second.value != id) fault(id, "is indexed but not found by its key");
    }
  }
  std::uint32_t num_walked = 0;
  for (auto id = first_allocatable(); id != null_block && num_walked <= num_blocks(); id = next_allocatable(id))
    ++num_walked;
  if (num_walked != num_listed_ || num_listed != num_listed_) faults.push_back("free list has a wrong length");
  if (num_cached != num_cached_) faults.push_back("wrong number of cached blocks");
  if (num_quarantined != num_quarantined_) faults.push_back("wrong number of quarantined blocks");
  if (num_indexed != index_.size()) faults.push_back("prefix index has a wrong size");
  return faults;
}

}  // namespace sluice::inline v0
