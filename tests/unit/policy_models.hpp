// SPDX-License-Identifier: Apache-2.0
//
// Eviction policies in their plainest form, over numbers in place of slots and keys.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <sluice/actors/scheduler/eviction_policy.hpp>

#include "host_tier_fixture.hpp"

namespace sluice::unit {

class policy_model {
 public:
  virtual ~policy_model() = default;
  virtual void insert(std::uint32_t slot, std::uint32_t key) = 0;
  virtual void set_idle(std::uint32_t slot, bool is_idle, bool is_use) = 0;
  virtual void touch_absent(std::uint32_t key) = 0;
  virtual void remove(std::uint32_t slot, bool is_evicted) = 0;
  virtual void reset() = 0;
  virtual bool is_idle(std::uint32_t slot) const = 0;
  /// Fewer than `count` only if there are no more.
  virtual numbers victims(const numbers& incoming, std::size_t count, const numbers& spared) const = 0;
};

inline bool contains(const numbers& in, std::uint32_t number) {
  return std::find(in.begin(), in.end(), number) != in.end();
}

class lru_model final : public policy_model {
 public:
  void insert(std::uint32_t, std::uint32_t) override {}
  void set_idle(std::uint32_t slot, bool is_idle, bool) override {
    std::erase(idle_, slot);
    if (is_idle) idle_.push_back(slot);
  }
  void touch_absent(std::uint32_t) override {}
  void remove(std::uint32_t slot, bool) override { std::erase(idle_, slot); }
  void reset() override { idle_.clear(); }
  bool is_idle(std::uint32_t slot) const override { return contains(idle_, slot); }
  numbers victims(const numbers&, std::size_t count, const numbers& spared) const override {
    numbers found;
    for (const auto slot : idle_)
      if (found.size() < count && !contains(spared, slot)) found.push_back(slot);
    return found;
  }

 private:
  numbers idle_;  // oldest first
};

class arc_model final : public policy_model {
 public:
  explicit arc_model(std::uint32_t num_slots) : num_slots_(num_slots) {}

  void insert(std::uint32_t slot, std::uint32_t key) override {
    for (int side : {0, 1})
      for (const auto ghost : ghosts_[side])
        if (ghost.key == key) {
          if (!ghost.has_moved_target) move_target(side);
          erase_ghost(side, key);
          residents_[1].push_back({slot, key, false});
          return;
        }
    residents_[0].push_back({slot, key, false});
  }
  void set_idle(std::uint32_t slot, bool is_idle, bool is_use) override {
    const auto side = side_of(slot);
    auto at = find(side, slot);
    auto moved = *at;
    moved.is_idle = is_idle;
    if (!is_idle) {
      *at = moved;
      return;
    }
    residents_[side].erase(at);
    residents_[is_use ? 1 : side].push_back(moved);
  }
  void touch_absent(std::uint32_t key) override {
    for (int side : {0, 1})
      if (is_ghost(side, key)) {
        move_target(side);
        erase_ghost(side, key);
        ghosts_[side].push_back({key, true});
        return;
      }
  }
  void remove(std::uint32_t slot, bool is_evicted) override {
    const auto side = side_of(slot);
    const auto at = find(side, slot);
    if (is_evicted) ghosts_[side].push_back({at->key, false});
    if (ghosts_[side].size() > num_slots_) ghosts_[side].erase(ghosts_[side].begin());
    residents_[side].erase(at);
  }
  void reset() override { *this = arc_model(num_slots_); }
  bool is_idle(std::uint32_t slot) const override {
    for (const auto& side : residents_)
      for (const auto& resident : side)
        if (resident.slot == slot) return resident.is_idle;
    return false;
  }
  numbers victims(const numbers& incoming, std::size_t count, const numbers& spared) const override {
    numbers found;
    auto recent_size = static_cast<double>(residents_[0].size());
    for (std::size_t i = 0; i < incoming.size(); ++i) {
      if (i + count >= incoming.size()) {
        const bool prefers_recent =
            recent_size > 0 && (recent_size > target_ || (recent_size == target_ && is_ghost(1, incoming[i])));
        int side = prefers_recent ? 0 : 1;
        auto victim = next_victim(side, found, spared);
        if (!victim) victim = next_victim(side = 1 - side, found, spared);
        if (!victim) return found;
        found.push_back(*victim);
        if (side == 0) --recent_size;
      }
      if (!is_ghost(0, incoming[i]) && !is_ghost(1, incoming[i])) ++recent_size;
    }
    return found;
  }

 private:
  struct resident_record {
    std::uint32_t slot, key;
    bool is_idle;
  };
  struct ghost_record {
    std::uint32_t key;
    bool has_moved_target;
  };

  int side_of(std::uint32_t slot) { return find(0, slot) != residents_[0].end() ? 0 : 1; }
  std::vector<resident_record>::iterator find(int side, std::uint32_t slot) {
    return std::find_if(residents_[side].begin(), residents_[side].end(), [&](auto& x) { return x.slot == slot; });
  }
  bool is_ghost(int side, std::uint32_t key) const {
    return std::any_of(ghosts_[side].begin(), ghosts_[side].end(), [&](auto& x) { return x.key == key; });
  }
  void erase_ghost(int side, std::uint32_t key) {
    std::erase_if(ghosts_[side], [&](auto& x) { return x.key == key; });
  }
  std::optional<std::uint32_t> next_victim(int side, const numbers& found, const numbers& spared) const {
    for (const auto& resident : residents_[side])
      if (resident.is_idle && !contains(found, resident.slot) && !contains(spared, resident.slot)) return resident.slot;
    return std::nullopt;
  }
  void move_target(int side) {
    const double mine = static_cast<double>(ghosts_[side].size()),
                 others = static_cast<double>(ghosts_[1 - side].size());
    const double step = mine >= others ? 1 : others / mine;
    target_ = std::clamp(side == 0 ? target_ + step : target_ - step, 0.0, static_cast<double>(num_slots_));
  }

  std::uint32_t num_slots_;
  std::vector<resident_record> residents_[2];  // recent and frequent, oldest first
  std::vector<ghost_record> ghosts_[2];
  double target_ = 0;
};

inline std::unique_ptr<policy_model> make_policy_model(eviction_policy_kind kind, std::uint32_t num_slots) {
  switch (kind) {
    case eviction_policy_kind::lru: return std::make_unique<lru_model>();
    case eviction_policy_kind::arc: return std::make_unique<arc_model>(num_slots);
  }
  return nullptr;
}

}  // namespace sluice::unit
