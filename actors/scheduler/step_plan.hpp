// SPDX-License-Identifier: Apache-2.0
//
// What a step will do, as a value. The planner makes it, apply_plan carries it into the state, and nothing changes it
// after dispatch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <sluice/messages/errc.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Why a request is preempted, for the counters.
enum class preemption_cause : std::uint8_t { capacity, priority, reset, pause };

struct planned_preemption {
  request_id request;
  preemption_cause cause = preemption_cause::capacity;
};

/// One group's share of a load: blocks [first_block, first_block + blocks.size()) of the sequence.
struct planned_load_part {
  group_id group;
  std::uint32_t first_block = 0;
  std::vector<block_id> blocks;      ///< targets, taken from the free list
  std::vector<content_key> keys;     ///< one per block
  std::vector<chunk_key> chunks;     ///< the chunks read, in sequence order
};

/// A load that the plan creates. Never without parts.
struct planned_load {
  transfer_id id;
  std::vector<planned_load_part> parts;
};

/// What a request gets of one group: null blocks where a window has passed, then blocks with content or under loads of
/// others, then its own load's targets.
struct planned_table {
  std::uint32_t num_passed = 0;
  std::vector<block_id> shared;
};

/// A waiting request gets blocks.
struct planned_admission {
  request_id request;
  std::vector<planned_table> tables;     ///< one per group
  std::vector<transfer_id> joined_loads; ///< of others
  std::optional<planned_load> load;
  std::uint32_t num_computed_tokens = 0; ///< once its loads have settled
  std::uint32_t num_device_tokens = 0;   ///< of these, found in blocks that nothing loads into
  epoch_id epoch;                        ///< of the oldest content it takes over

  bool is_loading() const { return load.has_value() || !joined_loads.empty(); }
};

/// A request computes `num_tokens` tokens from `first_position` on.
struct planned_entry {
  request_id request;
  attempt_id attempt;
  std::uint32_t first_position = 0;
  std::uint32_t num_tokens = 0;
  bool samples = false;
  std::vector<std::vector<block_id>> new_blocks;  ///< per group, appended to its table
};

struct planned_failure {
  request_id request;
  errc code = errc::none;
};

/// A waiting request that stays where it is, and why. What it is worth looking for before it is considered again
/// comes along.
struct planned_wait {
  request_id request;
  waiting_reason reason = waiting_reason::none;
  std::optional<chunk_key> awaited;         ///< of chunk_pending
  std::uint32_t num_available = 0;          ///< of no_blocks: blocks that were not enough
  std::optional<content_key> missing;       ///< of no_blocks: the first block's content that was not found
};

struct step_plan {
  step_id step;
  std::vector<planned_preemption> preempted;  ///< by this plan
  std::vector<planned_failure> failures;
  std::vector<planned_admission> admissions;
  std::vector<planned_entry> entries;
  std::vector<transfer_id> reused_stores;  ///< rising; they read blocks that this plan gives out for writing
  std::vector<chunk_key> touched;          ///< chunks that admitted requests have on the device
  std::vector<planned_wait> waits;

  /// Nothing that needs a step. `waits` alone do not.
  bool is_empty() const { return preempted.empty() && failures.empty() && admissions.empty() && entries.empty(); }
};

}  // namespace sluice::inline v0
