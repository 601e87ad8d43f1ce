// SPDX-License-Identifier: Apache-2.0
//
// The one record of every transfer that has not settled: its purpose, who waits for it, which memory it touches.
// Load and store actors own only the physical state. Owned by the scheduler.
//
//   wanted ── last waiter left (loads) ──▶ unwanted ──┐
//     │  reset of the tier ──────────────▶ stale ─────┼── settle ──▶ (no record)
//     │  flush timeout, invariant fault ─▶ given_up ──┤
//     └───────────────────────────────────────────────┘
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

enum class transfer_purpose : std::uint8_t {
  wanted,
  unwanted,  ///< a load nobody waits for; its blocks are indexed all the same when it settles well
  stale,     ///< of an epoch that a reset has ended: nothing is indexed
  given_up,  ///< its result does not count; the memory it touches is quarantined until it settles
};

struct transfer_record {
  transfer_id id;
  transfer_direction direction = transfer_direction::store;
  transfer_purpose purpose = transfer_purpose::wanted;
  request_id request;               ///< whose tokens; the request may have ended
  step_id created_in;
  epoch_id epoch;
  std::vector<block_copy> copies;   ///< group by group, in sequence order in each; the lists below are in this order
  std::vector<block_id> blocks;     ///< source or target blocks
  std::vector<slot_id> slots;       ///< one per chunk
  std::vector<chunk_key> chunks;    ///< the same
  std::vector<content_key> keys;    ///< loads: content of each block
  std::vector<std::size_t> private_blocks;  ///< loads: positions of blocks in which the creator computes tokens again
  std::vector<request_id> waiters;  ///< loads: requests that cannot run before it settles

  transfer_job job() const { return {id, copies}; }
  /// Whether the block at this position may be shared and indexed.
  bool is_shareable(std::size_t position) const {
    return std::find(private_blocks.begin(), private_blocks.end(), position) == private_blocks.end();
  }
};

/// A block under a load that others may join.
struct loading_block {
  transfer_id load;
  block_id block;
};

class transfer_ledger {
 public:
  /// The id that the next added transfer must carry.
  transfer_id next_id() const { return {last_id_ + 1}; }

  /// Adds a record; ids must rise.
  transfer_record& add(transfer_record record);

  /// null when the transfer has settled.
  const transfer_record* find(transfer_id id) const;

  /// Takes out the record of a transfer that ended physically, or of a load that was never submitted.
  std::optional<transfer_record> remove(transfer_id id);

  void add_waiter(transfer_id load, request_id request);
  /// The request leaves all its loads; those left without a waiter become unwanted.
  void leave_loads(request_id request);

  void mark_stale(transfer_id id);
  /// The store no longer counts for its request nor for re-use; the load can no longer be joined.
  void give_up(transfer_id id);

  /// Loads the request waits on, and its own unsettled stores that were not given up.
  std::span<const transfer_id> loads_of(request_id request) const;
  std::span<const transfer_id> stores_of(request_id request) const;

  /// Stores, not given up, that read `block`.
  std::span<const transfer_id> stores_reading(block_id block) const;

  /// The block that a joinable load of the current epoch brings this content into.
  std::optional<loading_block> find_loading(const content_key& key) const;

  std::size_t num_loads() const { return num_loads_; }
  std::size_t num_stores() const { return records_.size() - num_loads_; }
  /// Ids of unsettled transfers in one direction, rising.
  std::vector<transfer_id> ids(transfer_direction direction) const;
  const std::unordered_map<transfer_id, transfer_record>& records() const { return records_; }

  /// What is inconsistent, in words; empty when all is well.
  std::vector<std::string> check() const;

 private:
  struct request_transfers {
    std::vector<transfer_id> loads, stores;
  };

  void forget_for_request(request_id request, transfer_id id, std::vector<transfer_id> request_transfers::*list);
  void unfence(const transfer_record& store);
  void unjoin(const transfer_record& load);

  std::unordered_map<transfer_id, transfer_record> records_;
  std::unordered_map<request_id, request_transfers> by_request_;
  std::unordered_map<block_id, std::vector<transfer_id>> readers_;
  std::unordered_map<content_key, loading_block> loading_;
  std::uint64_t last_id_ = 0;
  std::size_t num_loads_ = 0;
};

}  // namespace sluice::inline v0
