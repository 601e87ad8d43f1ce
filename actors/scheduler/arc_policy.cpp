// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/arc_policy.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace sluice::inline v0 {

arc_policy::arc_policy(std::uint32_t num_slots)
    : members_(num_slots),
      evictable_(num_slots, 2),
      ghosts_{recency_map<ghost>(std::max(num_slots, 1U)), recency_map<ghost>(std::max(num_slots, 1U))} {}

void arc_policy::insert(slot_id slot, const chunk_key& key) {
  const auto ghost_of = ghost_side_of(key);
  if (ghost_of != none) {
    if (!ghosts_[ghost_of].find(key)->has_moved_target) move_target(ghost_of);
    ghosts_[ghost_of].erase(key);
  }
  members_[slot.value].key = key;
  enter(slot, ghost_of == none ? recent : frequent);
}

void arc_policy::ready(slot_id slot) { evictable_.push_back(side_of(slot), slot); }

void arc_policy::pin(slot_id slot) { evictable_.remove(slot); }

void arc_policy::unpin(slot_id slot) {
  leave(slot);
  enter(slot, frequent);
  evictable_.push_back(frequent, slot);
}

void arc_policy::touch(slot_id slot) {
  pin(slot);
  unpin(slot);
}

void arc_policy::touch_absent(const chunk_key& key) {
  const auto list = ghost_side_of(key);
  if (list == none) return;
  move_target(list);
  ghosts_[list].refresh(key).has_moved_target = true;
}

void arc_policy::evict(slot_id slot) {
  ghosts_[side_of(slot)].refresh(members_[slot.value].key);
  forget(slot);
}

void arc_policy::forget(slot_id slot) {
  if (evictable_.is_linked(slot)) evictable_.remove(slot);
  leave(slot);
}

void arc_policy::reset() { *this = arc_policy(static_cast<std::uint32_t>(members_.size())); }

std::vector<slot_id> arc_policy::victims(std::span<const chunk_key> incoming, std::size_t count,
                                         const std::function<bool(slot_id)>& is_spared) const {
  std::array<std::optional<slot_id>, 2> next{evictable_.first(recent), evictable_.first(frequent)};
  auto skip_spared = [&](side list) {
    while (next[list] && is_spared(*next[list])) next[list] = evictable_.after(*next[list]);
  };
  std::vector<slot_id> found;
  auto num_recent = static_cast<double>(sizes_[recent]);
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    const auto ghost_of = ghost_side_of(incoming[i]);
    if (i + count >= incoming.size()) {
      const bool is_recent_full = num_recent > target_ || (num_recent == target_ && ghost_of == frequent);
      auto from = num_recent > 0 && is_recent_full ? recent : frequent;
      skip_spared(from);
      if (!next[from]) skip_spared(from = from == recent ? frequent : recent);
      if (!next[from]) return found;
      found.push_back(*next[from]);
      next[from] = evictable_.after(*next[from]);
      if (from == recent) --num_recent;
    }
    if (ghost_of == none) ++num_recent;
  }
  return found;
}

arc_policy::side arc_policy::ghost_side_of(const chunk_key& key) const {
  if (ghosts_[recent].find(key) != nullptr) return recent;
  return ghosts_[frequent].find(key) != nullptr ? frequent : none;
}

void arc_policy::enter(slot_id slot, side list) {
  members_[slot.value].list = list;
  ++sizes_[list];
}

void arc_policy::leave(slot_id slot) {
  auto& list = members_[slot.value].list;
  --sizes_[list];
  list = none;
}

void arc_policy::move_target(side wanted) {
  const auto other = wanted == recent ? frequent : recent;
  const auto ratio = static_cast<double>(num_ghosts(other)) / static_cast<double>(num_ghosts(wanted));
  const auto step = std::max(1.0, ratio);
  target_ =
      wanted == recent ? std::min(target_ + step, static_cast<double>(members_.size())) : std::max(target_ - step, 0.0);
}

std::unique_ptr<eviction_policy> make_arc_policy(std::uint32_t num_slots) {
  return std::make_unique<arc_policy>(num_slots);
}

}  // namespace sluice::inline v0
