// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <sluice/actors/scheduler/block_hasher.hpp>
#include <sluice/actors/scheduler/block_pool.hpp>
#include <sluice/actors/scheduler/chunk_sightings.hpp>
#include <sluice/actors/scheduler/engine_observer.hpp>
#include <sluice/actors/scheduler/kv_events.hpp>
#include <sluice/actors/scheduler/request_table.hpp>
#include <sluice/actors/scheduler/scheduler_config.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>
#include <sluice/actors/scheduler/tier_index.hpp>
#include <sluice/actors/scheduler/transfer_ledger.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// What the planner may do, by the control commands in force.
struct planning_limits {
  bool admits = true;      ///< waiting requests
  bool computes = true;    ///< anything at all
  bool creates_loads = true;  ///< and lets requests join them
};

/// All that the scheduler owns. Read by the planner, changed by the functions of the rooms' other headers, each of
/// which says which part.
struct scheduler_state {
  /// `tier` may be null: no offloading. The observer outlives the state.
  scheduler_state(scheduler_config config, std::unique_ptr<tier_index> tier, engine_observer& observer = nobody());
  scheduler_state(const scheduler_state&) = delete;
  scheduler_state& operator=(const scheduler_state&) = delete;

  const scheduler_config config;
  block_pool pool;
  transfer_ledger ledger;
  request_table requests;
  std::unique_ptr<tier_index> tier;
  kv_event_log events;                      ///< of the device and the tier
  chunk_sightings sightings;                ///< for the store threshold
  std::vector<block_hasher> hashers;        ///< one per KV group
  epoch_id epoch{1};                        ///< of the tiers; grows with every reset of one
  planning_limits limits;
  step_id last_step;                        ///< opened, dispatched or not
  step_id last_sent_step;                   ///< sent to the executor
  step_id last_committed_step;              ///< of those sent
  std::size_t num_steps_in_flight = 0;      ///< sent and not committed
  std::vector<request_id> unreported_preemptions;  ///< leave when a dispatched plan has reported them
  std::vector<transfer_job> victim_stores;  ///< created by preemptions, not yet submitted
  std::unordered_map<chunk_key, std::vector<request_id>> chunk_waiters;  ///< parked until the chunk's store settles
  std::vector<request_id> lookup_waiters;   ///< parked until the tier has answered
  engine_totals totals;
  engine_observer& observer;                ///< of times; decides nothing

  /// How events name the tier.
  kv_place tier_place() const { return {tier->name(), {}}; }
  tier_index* offload_tier() const { return config.enable_prefix_caching ? tier.get() : nullptr; }
};

/// Fills in the keys of all full blocks of the request's known tokens.
void extend_keys(scheduler_state& state, request_record& request);

/// The request's part in a group, as events tell it.
kv_sequence sequence_of(const request_record& request, std::size_t group);

/// Gives back the request's blocks and forgets what it had computed. Deepest block first, so that a prefix is
/// evicted after what follows it.
void release_blocks(scheduler_state& state, request_record& request);

/// Gives back the blocks that the windows of its groups have passed, but for those of a chunk that is not complete.
void release_passed_blocks(scheduler_state& state, request_record& request);

/// Sends a running request, or a loading one whose loads have settled, back to waiting and puts it on the list of
/// preemptions that the next dispatched plan reports. If `stores_chunks`, its complete chunks that the tier does not
/// have go to `victim_stores`; its blocks are fenced by them.
void preempt(scheduler_state& state, request_record& request, preemption_cause cause, bool stores_chunks);

/// Parked requests are considered again: those that wait for the chunk, those that wait for the tier's answers, one
/// that waited for stores of its own, if it has none left.
void wake_chunk_waiters(scheduler_state& state, const chunk_key& chunk);
void wake_all_chunk_waiters(scheduler_state& state);
void wake_lookup_waiters(scheduler_state& state);
void wake_store_waiter(scheduler_state& state, request_id id);

/// The chunk's key: the key of its last block.
chunk_key key_of_chunk(const scheduler_state& state, const request_record& request, std::size_t group,
                       std::uint32_t chunk);

/// Appends copies of blocks [first, first + blocks.size()) of a sequence, which lie in `blocks`, to or from the
/// slots of the chunks they belong to. `slots.front()` is the slot of the chunk that block `first` is in. Runs of
/// consecutive device blocks inside a chunk become one copy.
void append_copies(std::vector<block_copy>& copies, group_id group, std::uint32_t first,
                   std::span<const block_id> blocks, std::span<const slot_id> slots, std::uint32_t blocks_per_chunk);

engine_snapshot make_snapshot(const scheduler_state& state);

/// Every violated invariant of the state between two steps, in words; empty when all is well.
std::vector<std::string> check_integrity(const scheduler_state& state);

}  // namespace sluice::inline v0
