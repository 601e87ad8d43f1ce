// SPDX-License-Identifier: Apache-2.0
#include <cassert>

#include <sluice/actors/scheduler/eviction_policy.hpp>

namespace sluice::inline v0 {

namespace {

/// A circular list through a node per slot; the last node is the list's head. Oldest first.
class lru_policy final : public eviction_policy {
 public:
  explicit lru_policy(std::uint32_t num_slots) : nodes_(num_slots + 1), head_(num_slots) {
    nodes_[head_] = {head_, head_};
  }

  void insert(slot_id slot) override {
    auto& node = nodes_[slot.value];
    assert(!node.is_linked());
    node.next = head_;
    node.previous = nodes_[head_].previous;
    nodes_[node.previous].next = slot.value;
    nodes_[head_].previous = slot.value;
    ++num_evictable_;
  }

  void remove(slot_id slot) override {
    auto& node = nodes_[slot.value];
    assert(node.is_linked());
    nodes_[node.previous].next = node.next;
    nodes_[node.next].previous = node.previous;
    node = {};
    --num_evictable_;
  }

  void touch(slot_id slot) override {
    remove(slot);
    insert(slot);
  }

  std::size_t num_evictable() const override { return num_evictable_; }

  std::vector<slot_id> victims(std::size_t count, const std::function<bool(slot_id)>& is_spared) const override {
    std::vector<slot_id> found;
    for (auto at = nodes_[head_].next; at != head_ && found.size() < count; at = nodes_[at].next)
      if (!is_spared(slot_id{at})) found.push_back(slot_id{at});
    return found;
  }

 private:
  static constexpr std::uint32_t unlinked = ~std::uint32_t{0};
  struct link {
    std::uint32_t previous = unlinked, next = unlinked;
    bool is_linked() const { return next != unlinked; }
  };

  std::vector<link> nodes_;
  std::uint32_t head_;
  std::size_t num_evictable_ = 0;
};

}  // namespace

std::unique_ptr<eviction_policy> make_lru_policy(std::uint32_t num_slots) {
  return std::make_unique<lru_policy>(num_slots);
}

}  // namespace sluice::inline v0
