// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/eviction_policy.hpp>
#include <sluice/actors/scheduler/slot_lists.hpp>

namespace sluice::inline v0 {

namespace {

/// Evictable slots in one list, oldest first.
class lru_policy final : public eviction_policy {
 public:
  explicit lru_policy(std::uint32_t num_slots) : num_slots_(num_slots), evictable_(num_slots, 1) {}

  void insert(slot_id, const chunk_key&) override {}
  void ready(slot_id slot) override { evictable_.push_back(0, slot); }
  void pin(slot_id slot) override { evictable_.remove(slot); }
  void unpin(slot_id slot) override { evictable_.push_back(0, slot); }
  void touch(slot_id slot) override {
    evictable_.remove(slot);
    evictable_.push_back(0, slot);
  }
  void touch_absent(const chunk_key&) override {}
  void evict(slot_id slot) override { evictable_.remove(slot); }
  void forget(slot_id slot) override {
    if (evictable_.is_linked(slot)) evictable_.remove(slot);
  }
  void reset() override { evictable_ = slot_lists(num_slots_, 1); }

  std::size_t num_evictable() const override { return evictable_.num_linked(); }

  std::vector<slot_id> victims(std::span<const chunk_key>, std::size_t count,
                               const std::function<bool(slot_id)>& is_spared) const override {
    std::vector<slot_id> found;
    for (auto slot = evictable_.first(0); slot && found.size() < count; slot = evictable_.after(*slot))
      if (!is_spared(*slot)) found.push_back(*slot);
    return found;
  }

 private:
  std::uint32_t num_slots_;
  slot_lists evictable_;
};

}  // namespace

std::unique_ptr<eviction_policy> make_lru_policy(std::uint32_t num_slots) {
  return std::make_unique<lru_policy>(num_slots);
}

std::unique_ptr<eviction_policy> make_eviction_policy(eviction_policy_kind kind, std::uint32_t num_slots) {
  switch (kind) {
    case eviction_policy_kind::lru: return make_lru_policy(num_slots);
    case eviction_policy_kind::arc: return make_arc_policy(num_slots);
  }
  return nullptr;
}

}  // namespace sluice::inline v0
