// SPDX-License-Identifier: Apache-2.0
//
// A host tier index whose chunks are called by numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/host_tier_index.hpp>

namespace sluice::unit {

using numbers = std::vector<std::uint32_t>;

inline chunk_key chunk(std::uint32_t number) {
  chunk_key key;
  for (std::size_t i = 0; i < sizeof(number); ++i) key.content[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return key;
}

inline std::uint32_t number_of(const chunk_key& key) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < sizeof(number); ++i) number |= std::uint32_t{key.content[i]} << (8 * i);
  return number;
}

inline std::vector<chunk_key> chunks(const numbers& of) {
  std::vector<chunk_key> keys;
  for (const auto number : of) keys.push_back(chunk(number));
  return keys;
}

using verdicts = std::vector<lookup_verdict>;

/// An offer's outcome with numbers in place of keys and slots.
struct offered {
  bool is_refused = false;
  numbers accepted, slots, evicted;
  friend bool operator==(const offered&, const offered&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const offered& x) {
  return out << (x.is_refused ? "refused" : "accepted ") << ::testing::PrintToString(x.accepted) << " in slots "
             << ::testing::PrintToString(x.slots) << ", evicted " << ::testing::PrintToString(x.evicted);
}

inline const offered refused{true, {}, {}, {}};

struct host_tier {
  explicit host_tier(std::uint32_t num_slots) : host_tier(num_slots, make_lru_policy(num_slots)) {}
  host_tier(std::uint32_t num_slots, std::unique_ptr<eviction_policy> policy) : index(num_slots, std::move(policy)) {}
  host_tier(const host_tier&) = delete;
  ~host_tier() { EXPECT_EQ(index.check(), std::vector<std::string>{}); }

  offered offer(const numbers& keys) {
    const auto outcome = index.offer(chunks(keys));
    offered result{outcome.is_refused, {}, {}, {}};
    for (const auto& accepted : outcome.accepted) {
      result.accepted.push_back(keys[accepted.position]);
      result.slots.push_back(accepted.slot.value);
    }
    for (const auto& key : outcome.evicted) result.evicted.push_back(number_of(key));
    EXPECT_EQ(index.check(), std::vector<std::string>{});
    return result;
  }

  /// Ends the stores of present chunks.
  void complete(const numbers& keys, bool ok = true) {
    for (const auto key : keys) index.complete(*index.find(chunk(key)), ok);
  }

  void store(const numbers& keys) {
    EXPECT_FALSE(offer(keys).is_refused);
    complete(keys);
  }

  numbers pin(const numbers& keys) {
    numbers slots;
    for (const auto slot : index.pin(chunks(keys))) slots.push_back(slot.value);
    return slots;
  }

  void unpin(const numbers& slots) {
    std::vector<slot_id> ids;
    for (const auto slot : slots) ids.push_back({slot});
    index.unpin(ids);
  }

  void touch(const numbers& keys) { index.touch(chunks(keys)); }
  lookup_verdict lookup(std::uint32_t key) const { return index.lookup(chunk(key)); }
  verdicts lookup(const numbers& keys) const {
    verdicts found;
    for (const auto key : keys) found.push_back(lookup(key));
    return found;
  }
  slot_counts counts() const { return index.counts(); }

  host_tier_index index;
};

}  // namespace sluice::unit
