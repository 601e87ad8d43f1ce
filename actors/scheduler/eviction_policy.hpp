// SPDX-License-Identifier: Apache-2.0
//
// Which idle slots of a tier go first. A policy knows the slots that hold a present chunk:
//
//            insert             ready                pin
//   unknown ─────────▶ written ───────▶ evictable ◀───────▶ pinned
//      ▲                  │ forget       │  │ evict  unpin     │ forget
//      └──────────────────┴──────────────┴──┴──────────────────┘
//
// Every operation but `victims` and `reset` takes constant time, amortised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <sluice/actors/scheduler/policies.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

class eviction_policy {
 public:
  virtual ~eviction_policy() = default;

  /// `slot` was given to `key`, which was in none: the key's first use, or the first since it was evicted.
  virtual void insert(slot_id slot, const chunk_key& key) = 0;

  /// The store into `slot` settled well: it is evictable, and counts as just used.
  virtual void ready(slot_id slot) = 0;

  /// The first load began to read `slot`, which was evictable.
  virtual void pin(slot_id slot) = 0;

  /// The last load that read `slot` ended: it is evictable again. The end of a load is a use.
  virtual void unpin(slot_id slot) = 0;

  /// A request wanted the chunk in `slot`, which is evictable.
  virtual void touch(slot_id slot) = 0;

  /// A request wanted `key`, which is in no slot.
  virtual void touch_absent(const chunk_key& key) = 0;

  /// The chunk in `slot`, which is evictable, gave way to others; its key may be remembered.
  virtual void evict(slot_id slot) = 0;

  /// The chunk in `slot` is gone for a reason of its own, whatever its state; its key is not remembered.
  virtual void forget(slot_id slot) = 0;

  /// Every chunk is gone, and nothing is remembered.
  virtual void reset() = 0;

  virtual std::size_t num_evictable() const = 0;

  /// The victims, in order, for the last `count` keys of `incoming`, the others of which have found free slots; none of
  /// them satisfies `is_spared`. Fewer only when no more are evictable. Changes nothing.
  virtual std::vector<slot_id> victims(std::span<const chunk_key> incoming, std::size_t count,
                                       const std::function<bool(slot_id)>& is_spared) const = 0;
};

/// Slot ids are below `num_slots`.
std::unique_ptr<eviction_policy> make_eviction_policy(eviction_policy_kind kind, std::uint32_t num_slots);

/// Least recently used first.
std::unique_ptr<eviction_policy> make_lru_policy(std::uint32_t num_slots);

/// Adaptive replacement, see `arc_policy`.
std::unique_ptr<eviction_policy> make_arc_policy(std::uint32_t num_slots);

}  // namespace sluice::inline v0
