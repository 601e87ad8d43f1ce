// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <sluice/actors/scheduler/block_hasher.hpp>
#include <sluice/actors/scheduler/block_pool.hpp>
#include <sluice/actors/scheduler/request_table.hpp>
#include <sluice/actors/scheduler/scheduler_config.hpp>
#include <sluice/actors/scheduler/tier_index.hpp>
#include <sluice/actors/scheduler/transfer_ledger.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// All that the scheduler owns. Read by the planner, changed by the functions of the rooms' other headers, each of
/// which says which part.
struct scheduler_state {
  /// `tier` may be null: no offloading.
  scheduler_state(scheduler_config config, std::unique_ptr<tier_index> tier);

  const scheduler_config config;
  block_pool pool;
  transfer_ledger ledger;
  request_table requests;
  std::unique_ptr<tier_index> tier;
  std::vector<block_hasher> hashers;        ///< one per KV group
  epoch_id epoch{1};                        ///< of the tiers; grows with every reset of one
  step_id last_step;                        ///< opened, dispatched or not
  step_id last_sent_step;                   ///< sent to the executor
  std::vector<request_id> unreported_preemptions;  ///< leave when a dispatched plan has reported them
  engine_totals totals;

  tier_index* offload_tier() const { return config.enable_prefix_caching ? tier.get() : nullptr; }
  std::uint32_t tokens_per_chunk(std::size_t group) const {
    return config.block_size(group) * config.blocks_per_chunk;
  }
};

/// Fills in the keys of all full blocks of the request's known tokens.
void extend_keys(scheduler_state& state, request_record& request);

/// Gives back the request's blocks and forgets what it had computed. Deepest block first, so that a prefix is
/// evicted after what follows it.
void release_blocks(scheduler_state& state, request_record& request);

/// Why a request is preempted, for the counters.
enum class preemption_cause : std::uint8_t { capacity, reset };

/// Sends a running request, or a loading one whose loads have settled, back to waiting and puts it on the list of
/// preemptions that the next dispatched plan reports.
void preempt(scheduler_state& state, request_record& request, preemption_cause cause);

/// The chunk's key: the key of its last block.
chunk_key key_of_chunk(const scheduler_state& state, const request_record& request, std::size_t group,
                       std::uint32_t chunk);

/// Appends copies of blocks [first, first + blocks.size()) of a sequence, which lie in `blocks`, to or from the
/// slots of the chunks they belong to. `slots.front()` is the slot of the chunk that block `first` is in. Runs of
/// consecutive device blocks inside a chunk become one copy.
std::vector<block_copy> make_copies(std::uint32_t first, const std::vector<block_id>& blocks,
                                    const std::vector<slot_id>& slots, std::uint32_t blocks_per_chunk);

engine_snapshot make_snapshot(const scheduler_state& state);

/// Every violated invariant of the state between two steps, in words; empty when all is well.
std::vector<std::string> check_integrity(const scheduler_state& state);

}  // namespace sluice::inline v0
