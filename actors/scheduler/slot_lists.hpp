// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Lists of slots, each slot in at most one, through one pair of links per slot. All operations take constant time.
class slot_lists {
 public:
  slot_lists(std::uint32_t num_slots, std::uint32_t num_lists) : num_slots_(num_slots), links_(num_slots + num_lists) {
    for (auto head = num_slots; head < links_.size(); ++head) links_[head] = {head, head};
  }

  bool is_linked(slot_id slot) const { return links_[slot.value].next != unlinked; }
  std::size_t num_linked() const { return num_linked_; }

  void push_back(std::uint32_t list, slot_id slot) {
    assert(!is_linked(slot));
    const auto head = num_slots_ + list;
    links_[slot.value] = {links_[head].previous, head};
    links_[links_[head].previous].next = slot.value;
    links_[head].previous = slot.value;
    ++num_linked_;
  }

  void remove(slot_id slot) {
    assert(is_linked(slot));
    auto& link = links_[slot.value];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
    link = {};
    --num_linked_;
  }

  std::optional<slot_id> first(std::uint32_t list) const { return slot_at(links_[num_slots_ + list].next); }
  std::optional<slot_id> after(slot_id slot) const { return slot_at(links_[slot.value].next); }

 private:
  static constexpr std::uint32_t unlinked = ~std::uint32_t{0};
  struct node {
    std::uint32_t previous = unlinked, next = unlinked;
  };

  std::optional<slot_id> slot_at(std::uint32_t position) const {
    if (position >= num_slots_) return std::nullopt;  // the head of a list, whose end it is
    return slot_id{position};
  }

  std::uint32_t num_slots_;
  std::vector<node> links_;  // of the slots, then of the lists' heads
  std::size_t num_linked_ = 0;
};

}  // namespace sluice::inline v0
