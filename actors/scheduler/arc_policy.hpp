// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sluice/actors/scheduler/eviction_policy.hpp>
#include <sluice/actors/scheduler/recency_map.hpp>
#include <sluice/actors/scheduler/slot_lists.hpp>

namespace sluice::inline v0 {

/// Adaptive replacement: chunks used once are *recent* (T1), those used again *frequent* (T2), and the keys evicted
/// from either are its *ghosts* (B1, B2). A ghost that is wanted again moves the target size of the recent list (p)
/// towards the side it was evicted from. So a long scan passes through the recent list and leaves frequent chunks
/// alone.
///
/// After N. Megiddo and D. S. Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003. Differences:
/// - Chunks that are written or read keep their list, and count in its size, but are no victims; when a list has no
///   victim left the other one gives it.
/// - Every eviction leaves a ghost, and each ghost list holds as many keys as there are slots.
/// - A ghost moves the target when a request wants it, which is before its chunk is computed and inserted again; it
///   moves it at insertion only if nobody wanted it before.
class arc_policy final : public eviction_policy {
 public:
  explicit arc_policy(std::uint32_t num_slots);

  void insert(slot_id slot, const chunk_key& key) override;
  void ready(slot_id slot) override;
  void pin(slot_id slot) override;
  void unpin(slot_id slot) override;
  void touch(slot_id slot) override;
  void touch_absent(const chunk_key& key) override;
  void evict(slot_id slot) override;
  void forget(slot_id slot) override;
  void reset() override;
  std::size_t num_evictable() const override { return evictable_.num_linked(); }
  std::vector<slot_id> victims(std::span<const chunk_key> incoming, std::size_t count,
                               const std::function<bool(slot_id)>& is_spared) const override;

  enum side : std::uint8_t { recent, frequent, none };

  /// The list that the chunk in `slot` is in.
  side side_of(slot_id slot) const { return members_[slot.value].list; }
  /// The list whose ghost `key` is.
  side ghost_side_of(const chunk_key& key) const;
  std::size_t size(side list) const { return sizes_[list]; }
  std::size_t num_ghosts(side list) const { return ghosts_[list].size(); }

  /// How many chunks the recent list should have, in [0, number of slots].
  double target() const { return target_; }
  void set_target(double num_chunks) { target_ = num_chunks; }

 private:
  struct member {
    side list = none;
    chunk_key key;
  };
  struct ghost {
    bool has_moved_target = false;  // since it was evicted
  };

  void enter(slot_id slot, side list);
  void leave(slot_id slot);
  void move_target(side wanted);

  std::vector<member> members_;    // by slot
  slot_lists evictable_;           // a list per side, oldest first
  std::size_t sizes_[2] = {0, 0};  // written and pinned members included
  recency_map<ghost> ghosts_[2];
  double target_ = 0;
};

}  // namespace sluice::inline v0
