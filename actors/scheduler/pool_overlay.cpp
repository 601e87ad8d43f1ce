// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/pool_overlay.hpp>

#include <cassert>

namespace sluice::inline v0 {

pool_overlay::pool_overlay(const block_pool& pool)
    : pool_(pool), cursor_(pool.first_allocatable()), num_allocatable_(pool.num_allocatable()) {}

std::uint32_t pool_overlay::num_references(block_id block) const {
  auto found = touched_.find(block);
  return found == touched_.end() ? pool_.num_references(block) : found->second.num_references;
}

/// False once the block was taken again, also when it was released once more.
bool pool_overlay::is_in_place(const released_block& released) const {
  const auto& block = touched_.at(released.block);
  return block.num_references == 0 && block.last_release == released.release;
}

block_id pool_overlay::allocate() {
  assert(num_allocatable_ > 0);
  block_id block = null_block;
  while (block == null_block && !released_front_.empty()) {
    if (is_in_place(released_front_.back())) block = released_front_.back().block;
    released_front_.pop_back();
  }
  while (block == null_block && cursor_ != null_block) {
    if (!touched_.contains(cursor_)) block = cursor_;
    cursor_ = pool_.next_allocatable(cursor_);
  }
  while (block == null_block && !released_back_.empty()) {
    if (is_in_place(released_back_.front())) block = released_back_.front().block;
    released_back_.pop_front();
  }
  assert(block != null_block);
  touched_[block].num_references = 1;
  rewritten_.insert(block);
  --num_allocatable_;
  return block;
}

void pool_overlay::share(block_id block) {
  const auto references = num_references(block);
  if (references == 0) --num_allocatable_;
  touched_[block].num_references = references + 1;
}

void pool_overlay::release(block_id block) {
  const auto references = num_references(block);
  assert(references > 0);
  auto& touched = touched_[block];
  touched.num_references = references - 1;
  if (references > 1 || pool_.is_quarantined(block)) return;
  ++num_allocatable_;
  touched.last_release = ++num_releases_;
  if (pool_.is_indexed(block) && holds_content(block))
    released_back_.push_back({block, num_releases_});
  else
    released_front_.push_back({block, num_releases_});
}

}  // namespace sluice::inline v0
