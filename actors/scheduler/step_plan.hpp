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

/// A load that the plan creates, of blocks [first_block, first_block + blocks.size()) of its request's sequence.
struct planned_load {
  transfer_id id;
  group_id group;
  std::uint32_t first_block = 0;
  std::vector<block_id> blocks;      ///< targets, taken from the free list
  std::vector<content_key> keys;     ///< one per block
  std::vector<chunk_key> chunks;     ///< the chunks read, in sequence order
  bool recomputes_last_block = false;
};

/// A waiting request gets blocks. Its table becomes device blocks, joined blocks, then the load's targets.
struct planned_admission {
  request_id request;
  std::vector<block_id> device_blocks;   ///< prefix hits
  std::vector<block_id> joined_blocks;   ///< targets of loads of others
  std::vector<transfer_id> joined_loads;
  std::optional<planned_load> load;
  std::uint32_t num_computed_tokens = 0; ///< once its loads have settled
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

/// A waiting request that stays where it is, and why.
struct planned_wait {
  request_id request;
  waiting_reason reason = waiting_reason::none;
};

struct step_plan {
  step_id step;
  std::vector<request_id> preempted;       ///< by this plan, for capacity
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
