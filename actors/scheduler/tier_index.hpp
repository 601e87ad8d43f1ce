// SPDX-License-Identifier: Apache-2.0
//
// The tier seam as the scheduler sees it: which chunks a tier has, where, and which may go. The bytes are moved by
// the load and store actors; nothing here touches them.
//
//             offer                complete(ok)            evict, drop
//   free ───────────────▶ pending ───────────────▶ ready ───────────────▶ free
//                           │  complete(failed)      │ drop or reset while pinned
//                           ├──────────────▶ free    ▼
//                           └─ drop, reset ─▶ draining ── last complete or unpin ──▶ free
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

enum class lookup_verdict : std::uint8_t {
  hit,      ///< readable now
  pending,  ///< present, its store has not settled
  retry,    ///< not known yet, ask again
  miss,
};

/// Why an offer ended as it did. An accepted offer may have got no slot at all (everything is present).
struct offer_outcome {
  struct accepted_chunk {
    std::size_t position;  ///< in the offered list
    slot_id slot;
  };
  bool is_refused = false;  ///< no room even by evicting; nothing was changed
  std::vector<accepted_chunk> accepted;
  std::vector<chunk_key> evicted;
};

/// What a tier answered to a reset. Only `reset` is a success.
struct tier_reset_outcome {
  enum class verdict : std::uint8_t {
    reset,        ///< nothing is left
    refused,      ///< everything is as it was; another attempt may succeed
    unsupported,  ///< everything is as it was; no attempt will succeed
  };
  verdict result = verdict::unsupported;
  std::uint64_t num_dropped = 0;  ///< chunks

  friend bool operator==(const tier_reset_outcome&, const tier_reset_outcome&) = default;
};

class tier_index {
 public:
  virtual ~tier_index() = default;

  virtual std::string name() const = 0;

  virtual lookup_verdict lookup(const chunk_key& key) const = 0;

  /// Prepares a store of those of `keys` that are not present; each accepted slot is pending and write-pinned until
  /// `complete`. Neither a pinned slot nor a slot of one of `keys` is evicted for it. All or nothing.
  virtual offer_outcome offer(std::span<const chunk_key> keys) = 0;

  /// The store into `slot` ended physically.
  virtual void complete(slot_id slot, bool ok) = 0;

  /// Pins the slots of `keys`, all of which must be hits, while a load reads them. In the order asked for.
  virtual std::vector<slot_id> pin(std::span<const chunk_key> keys) = 0;

  /// One load that read `slots` ended physically; refreshes their recency.
  virtual void unpin(std::span<const slot_id> slots) = 0;

  /// A request wanted these chunks: refreshes the recency of those that are evictable, and tells the eviction policy of
  /// those that are absent.
  virtual void touch(std::span<const chunk_key> keys) = 0;

  /// Says what the chunk in `slot` begins with: the content of its blocks but the last, in order.
  virtual void describe(slot_id slot, std::span<const content_key> leading_blocks) = 0;

  /// A hit that begins with the block of this content and all before it in a chunk; if there are several, the one
  /// described last.
  virtual std::optional<chunk_key> find_beginning(const content_key& block) const = 0;

  /// Forgets the chunk in `slot`: its bytes are not to be trusted. It drains while something reads or writes it. False
  /// when it was forgotten already.
  virtual bool drop(slot_id slot) = 0;

  /// Forgets everything, or nothing. Slots in use are no reason to refuse: they drain.
  virtual tier_reset_outcome reset() = 0;

  virtual slot_counts counts() const = 0;

  /// What is inconsistent, in words; empty when all is well.
  virtual std::vector<std::string> check() const = 0;
};

}  // namespace sluice::inline v0
