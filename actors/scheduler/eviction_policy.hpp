// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Decides which idle slots of a tier go first. Knows evictable slots only: complete, unpinned, not draining.
class eviction_policy {
 public:
  virtual ~eviction_policy() = default;

  /// `slot` became evictable; it counts as just used.
  virtual void insert(slot_id slot) = 0;

  /// `slot` is no longer evictable.
  virtual void remove(slot_id slot) = 0;

  /// `slot`, which is evictable, was used.
  virtual void touch(slot_id slot) = 0;

  virtual std::size_t num_evictable() const = 0;

  /// The next `count` victims in order, none of which satisfies `is_spared`; fewer when there are not that many.
  /// Changes nothing.
  virtual std::vector<slot_id> victims(std::size_t count, const std::function<bool(slot_id)>& is_spared) const = 0;
};

/// Least recently used first. `num_slots` bounds the slot ids.
std::unique_ptr<eviction_policy> make_lru_policy(std::uint32_t num_slots);

}  // namespace sluice::inline v0
