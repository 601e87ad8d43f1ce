// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/actors/scheduler/recency_map.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// How often chunks were wanted, so that a store can wait for the nth time. Bounded: when `capacity` keys are known,
/// a new one takes the place of the one that was sighted the longest ago, whose count begins anew. All operations take
/// constant time.
class chunk_sightings {
 public:
  /// `capacity` keys, at least one.
  explicit chunk_sightings(std::size_t capacity) : counts_(capacity) {}

  /// A request wanted the chunk.
  void sight(const chunk_key& key);

  /// Sightings since the key was last new; 0 of an unknown one. Asking is no sighting.
  std::uint32_t count(const chunk_key& key) const;

  /// Whether the chunk was sighted `threshold` times. A threshold of 1 or less asks for nothing: who offers a chunk has
  /// seen it.
  bool reaches(const chunk_key& key, std::uint32_t threshold) const {
    return threshold <= 1 || count(key) >= threshold;
  }

  std::size_t num_keys() const { return counts_.size(); }

  void clear() { counts_.clear(); }

 private:
  recency_map<std::uint32_t> counts_;
};

}  // namespace sluice::inline v0
