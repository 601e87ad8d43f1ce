// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/host_tier_index.hpp>

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include <sluice/actors/rules.hpp>

namespace sluice::inline v0 {

host_tier_index::host_tier_index(std::uint32_t num_slots, std::unique_ptr<eviction_policy> policy)
    : slots_(num_slots), policy_(std::move(policy)) {
  counts_.free = num_slots;
}

std::optional<slot_id> host_tier_index::find(const chunk_key& key) const {
  auto found = index_.find(key);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

lookup_verdict host_tier_index::lookup(const chunk_key& key) const {
  auto slot = find(key);
  if (!slot) return lookup_verdict::miss;
  if (!holds(rule::pending_is_no_hit)) return lookup_verdict::hit;
  return slots_[slot->value].state == slot_state::ready ? lookup_verdict::hit : lookup_verdict::pending;
}

offer_outcome host_tier_index::offer(std::span<const chunk_key> keys) {
  std::vector<std::size_t> wanted;
  std::vector<chunk_key> incoming;
  std::unordered_set<slot_id> spared;
  std::unordered_set<chunk_key> seen;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (auto slot = find(keys[i])) {
      spared.insert(*slot);
    } else if (seen.insert(keys[i]).second) {
      wanted.push_back(i);
      incoming.push_back(keys[i]);
    }
  }
  const offer_outcome refused{true, {}, {}};
  std::vector<slot_id> victims;
  if (wanted.size() > counts_.free) {
    const auto num_needed = wanted.size() - counts_.free;
    if (policy_->num_evictable() < num_needed) return refused;
    victims = policy_->victims(incoming, num_needed, [&](slot_id slot) {
      return holds(rule::spare_offered_slots) && spared.contains(slot);
    });
    if (victims.size() < num_needed) return refused;
  }
  return accept(keys, wanted, victims);
}

offer_outcome host_tier_index::accept(std::span<const chunk_key> keys, const std::vector<std::size_t>& wanted,
                                      const std::vector<slot_id>& victims) {
  offer_outcome outcome;
  for (auto slot : victims) {
    assert(slots_[slot.value].num_readers == 0 && !slots_[slot.value].is_written);
    outcome.evicted.push_back(slots_[slot.value].key);
    policy_->evict(slot);
    release(slot);
  }
  for (auto position : wanted) {
    const auto slot = take_slot();
    auto& record = slots_[slot.value];
    record.key = keys[position];
    record.is_written = true;
    ++counts_.pinned;
    index_[record.key] = slot;
    move_to(slot, slot_state::pending);
    policy_->insert(slot, record.key);
    outcome.accepted.push_back({position, slot});
  }
  return outcome;
}

void host_tier_index::complete(slot_id slot, bool ok) {
  auto& record = slots_[slot.value];
  assert(record.is_written);
  record.is_written = false;
  if (record.num_readers == 0) --counts_.pinned;
  if (record.state == slot_state::pending && ok) {
    move_to(slot, slot_state::ready);
    policy_->ready(slot);
    add_beginnings(slot);
  } else if (record.state == slot_state::pending) {
    drop(slot);
  } else {
    free_if_quiet(slot);
  }
}

std::vector<slot_id> host_tier_index::pin(std::span<const chunk_key> keys) {
  std::vector<slot_id> pinned;
  for (const auto& key : keys) {
    const auto slot = index_.at(key);
    auto& record = slots_[slot.value];
    assert(record.state == slot_state::ready || !holds(rule::pending_is_no_hit));
    if (record.num_readers++ == 0) {
      if (holds(rule::pin_loaded_slots)) policy_->pin(slot);
      ++counts_.pinned;
    }
    pinned.push_back(slot);
  }
  return pinned;
}

void host_tier_index::unpin(std::span<const slot_id> slots) {
  for (auto slot : slots) {
    auto& record = slots_[slot.value];
    assert(record.num_readers > 0);
    if (--record.num_readers > 0) continue;
    --counts_.pinned;
    if (record.state == slot_state::ready)
      holds(rule::pin_loaded_slots) ? policy_->unpin(slot) : policy_->touch(slot);
    else
      free_if_quiet(slot);
  }
}

void host_tier_index::touch(std::span<const chunk_key> keys) {
  for (const auto& key : keys) {
    const auto slot = find(key);
    if (!slot)
      policy_->touch_absent(key);
    else if (is_evictable(*slot))
      policy_->touch(*slot);
  }
}

void host_tier_index::describe(slot_id slot, std::span<const content_key> leading_blocks) {
  forget_beginnings(slot);
  slots_[slot.value].leading_blocks.assign(leading_blocks.begin(), leading_blocks.end());
  if (slots_[slot.value].state == slot_state::ready) add_beginnings(slot);
}

std::optional<chunk_key> host_tier_index::find_beginning(const content_key& block) const {
  const auto found = beginnings_.find(block);
  if (found == beginnings_.end()) return std::nullopt;
  return slots_[found->second.begin()->value].key;
}

void host_tier_index::add_beginnings(slot_id slot) {
  for (const auto& block : slots_[slot.value].leading_blocks) beginnings_[block].insert(slot);
}

void host_tier_index::forget_beginnings(slot_id slot) {
  auto& leading_blocks = slots_[slot.value].leading_blocks;
  for (const auto& block : leading_blocks)
    if (const auto found = beginnings_.find(block); found != beginnings_.end()) {
      found->second.erase(slot);
      if (found->second.empty()) beginnings_.erase(found);
    }
  leading_blocks.clear();
}

bool host_tier_index::drop(slot_id slot) {
  if (!is_present(slot)) return false;
  policy_->forget(slot);
  release(slot);
  return true;
}

tier_reset_outcome host_tier_index::reset() {
  const auto num_dropped = index_.size();
  for (std::uint32_t s = 0; s < num_fresh_used_; ++s)
    if (is_present(slot_id{s})) release(slot_id{s});
  policy_->reset();
  return {tier_reset_outcome::verdict::reset, num_dropped};
}

slot_counts host_tier_index::counts() const { return counts_; }

slot_id host_tier_index::take_slot() {
  if (num_fresh_used_ < slots_.size()) return slot_id{num_fresh_used_++};
  const auto slot = freed_.back();
  freed_.pop_back();
  return slot;
}

void host_tier_index::release(slot_id slot) {
  index_.erase(slots_[slot.value].key);
  forget_beginnings(slot);
  move_to(slot, slot_state::draining);
  free_if_quiet(slot);
}

void host_tier_index::free_if_quiet(slot_id slot) {
  auto& record = slots_[slot.value];
  if (record.is_written || record.num_readers > 0) return;
  move_to(slot, slot_state::free);
  freed_.push_back(slot);
}

bool host_tier_index::is_present(slot_id slot) const {
  const auto state = slots_[slot.value].state;
  return state == slot_state::pending || state == slot_state::ready;
}

bool host_tier_index::is_evictable(slot_id slot) const {
  const auto& record = slots_[slot.value];
  return record.state == slot_state::ready && record.num_readers == 0;
}

void host_tier_index::move_to(slot_id slot, slot_state next) {
  auto count = [this](slot_state state) -> std::uint64_t& {
    switch (state) {
      case slot_state::free: return counts_.free;
      case slot_state::pending: return counts_.pending;
      case slot_state::ready: return counts_.ready;
      case slot_state::draining: return counts_.draining;
    }
    return counts_.free;
  };
  auto& state = slots_[slot.value].state;
  --count(state);
  ++count(next);
  state = next;
}

std::vector<std::string> host_tier_index::check() const {
  std::vector<std::string> faults;
  slot_counts recount;
  std::size_t num_evictable = 0;
  for (std::uint32_t s = 0; s < slots_.size(); ++s) {
    const auto& record = slots_[s];
    auto fault = [&](const char* what) { faults.push_back("slot " + std::to_string(s) + " " + what); };
    const bool is_here = is_present(slot_id{s});
    if (is_here && find(record.key) != slot_id{s}) fault("is not found by its key");
    if (record.state == slot_state::free && (record.is_written || record.num_readers > 0)) fault("is free and in use");
    if (record.state == slot_state::draining && !record.is_written && record.num_readers == 0)
      fault("drains although nothing uses it");
    if ((record.state == slot_state::pending) != (record.is_written && is_here)) fault("is pending without a store");
    recount.free += record.state == slot_state::free;
    recount.pending += record.state == slot_state::pending;
    recount.ready += record.state == slot_state::ready;
    recount.draining += record.state == slot_state::draining;
    recount.pinned += record.is_written || record.num_readers > 0;
    num_evictable += is_evictable(slot_id{s});
  }
  std::size_t num_beginnings = 0;
  for (const auto& record : slots_)
    if (record.state == slot_state::ready) num_beginnings += record.leading_blocks.size();
  for (const auto& [block, slots] : beginnings_)
    for (const auto slot : slots) {
      --num_beginnings;
      const auto& record = slots_[slot.value];
      const auto& leading = record.leading_blocks;
      if (record.state != slot_state::ready || std::find(leading.begin(), leading.end(), block) == leading.end())
        faults.push_back("slot " + std::to_string(slot.value) + " is found by what its chunk does not begin with");
    }
  if (num_beginnings != 0) faults.push_back("a ready chunk is not found by what it begins with");
  if (!(recount == counts_)) faults.push_back("slot counts are wrong");
  if (recount.pending + recount.ready != index_.size()) faults.push_back("tier index has a wrong size");
  if (num_evictable != policy_->num_evictable()) faults.push_back("eviction policy has a wrong size");
  return faults;
}

}  // namespace sluice::inline v0
