// SPDX-License-Identifier: Apache-2.0
//
// Keeps what the scheduler sent to the load, store and executor actors, so that a test can ask which part of which
// request was stored, loaded or computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <sluice/messages/messages.hpp>

namespace sluice::testing {

/// Positions in a request's block table, rising. Blocks that were moved twice stand twice.
using ordinals = std::vector<std::uint32_t>;

struct recorded_transfer {
  transfer_id id;
  transfer_direction direction = transfer_direction::store;
  request_id request;  ///< that it was created for
  step_id step;        ///< of the message
  std::vector<block_copy> copies;
  std::size_t num_batches_before = 0;  ///< batches that were sent before it

  /// Of one group, in sequence order.
  std::vector<block_id> blocks(std::uint16_t group = 0) const;
};

class traffic_recorder {
 public:
  // Each may be called more than once with the same message.
  void add(const step_batch& batch);
  void add(const flush_stores& flush);
  void add(transfer_direction direction, step_id step, const std::vector<transfer_job>& jobs,
           const std::function<request_id(transfer_id)>& owner);

  /// Throws when there was no such transfer.
  const recorded_transfer& transfer(transfer_id id) const { return transfers_.at(id); }
  std::vector<transfer_id> stores_of(request_id request) const { return find(transfer_direction::store, request); }
  /// Without those that it joined.
  std::vector<transfer_id> loads_of(request_id request) const { return find(transfer_direction::load, request); }

  /// Of a load only once its request has been computed after it.
  ordinals ordinals_of(transfer_id id, std::uint16_t group = 0) const;
  ordinals stored_ordinals(request_id request, std::uint16_t group = 0) const {
    return ordinals_of(stores_of(request), group);
  }
  ordinals loaded_ordinals(request_id request, std::uint16_t group = 0) const {
    return ordinals_of(loads_of(request), group);
  }

  const std::vector<step_batch>& batches() const { return batches_; }
  std::vector<batch_entry> entries_of(request_id request) const;

  /// Of all flushes so far, in the order of asking.
  const std::vector<transfer_id>& flushed() const { return flushed_; }

 private:
  std::vector<transfer_id> find(transfer_direction direction, request_id request) const;
  ordinals ordinals_of(const std::vector<transfer_id>& ids, std::uint16_t group) const;
  std::vector<std::vector<block_id>> tables_of(const recorded_transfer& transfer, std::uint16_t group) const;

  std::map<transfer_id, recorded_transfer> transfers_;
  std::vector<step_batch> batches_;
  std::vector<transfer_id> flushed_;
  step_id last_flush_;
};

}  // namespace sluice::testing
