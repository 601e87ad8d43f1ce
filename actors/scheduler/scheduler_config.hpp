// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/scheduler/kv_shape.hpp>
#include <sluice/actors/scheduler/policies.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// What the scheduler is told once. Checked by the runtime before it gets here.
struct scheduler_config {
  model_info model;
  kv_spec kv;                                ///< its groups in the order of group ids
  std::uint32_t num_device_blocks = 0;       ///< the null block included
  std::uint32_t num_host_slots = 0;          ///< 0: no host tier
  std::uint32_t blocks_per_chunk = 1;
  bool enable_prefix_caching = true;         ///< false: nothing is found, stored or loaded
  std::uint32_t max_model_len = 0;           ///< tokens
  std::uint32_t max_num_seqs = 256;          ///< running and loading requests
  std::uint32_t max_num_batched_tokens = 2048;
  bool async_scheduling = true;              ///< plan one step ahead of the results
  bool preemption_offload = true;            ///< store a victim's complete chunks before its blocks are given away
  scheduling_policy order = scheduling_policy::fcfs;
  offload_scope offload = offload_scope::all;
  store_policy storing = store_policy::incremental;
  bool offload_prompt_only = false;          ///< but for victims
  std::uint32_t store_threshold = 0;         ///< a chunk is stored from its nth sighting on; 0 and 1: at once
  std::uint32_t num_tracked_sightings = 65536;
  std::uint32_t recompute_budget = 0;        ///< chunks that are rather computed than waited for
  std::optional<std::uint32_t> retention_interval;  ///< tokens; which window chunks are kept, see chunk_scan.hpp
  bool match_chunk_beginnings = true;        ///< load the leading blocks of a stored chunk that goes on differently
  bool records_kv_events = false;
  std::chrono::nanoseconds transfer_timeout = std::chrono::seconds{60};  ///< then a transfer is given up
  std::chrono::nanoseconds lookup_timeout = std::chrono::seconds{10};    ///< longest wait for pending chunks and lookups

  std::size_t num_groups() const { return kv.groups.size(); }
  group_shape shape(std::size_t group) const {
    const auto& spec = kv.groups[group];
    const bool is_window = spec.attention == kv_group_spec::kind::sliding_window;
    return {spec.block_size, is_window ? spec.window_tokens : 0, blocks_per_chunk};
  }
  std::uint32_t block_size(std::size_t group) const { return kv.groups[group].block_size; }
  std::uint32_t tokens_per_chunk(std::size_t group) const { return block_size(group) * blocks_per_chunk; }
  /// Blocks of `group` that hold `num_tokens` tokens.
  std::uint32_t num_blocks_for(std::size_t group, std::uint32_t num_tokens) const {
    return shape(group).num_blocks_for(num_tokens);
  }
  /// What of a window is stored says nothing of hits that end inside a chunk.
  bool matches_chunk_beginnings() const {
    return match_chunk_beginnings && blocks_per_chunk > 1 &&
           std::none_of(kv.groups.begin(), kv.groups.end(), [](const kv_group_spec& group) {
             return group.attention == kv_group_spec::kind::sliding_window;
           });
  }
  /// Tokens of one request that may be under computation at once.
  std::uint64_t num_tokens_in_flight() const {
    return std::uint64_t{max_num_batched_tokens} * (async_scheduling ? 2 : 1);
  }
  /// The most blocks of all groups that a request of `num_tokens` holds at once.
  std::uint64_t num_blocks_at_most(std::uint32_t num_tokens) const {
    std::uint64_t sum = 0;
    for (std::size_t g = 0; g < num_groups(); ++g)
      sum += shape(g).num_blocks_at_most(num_tokens, num_tokens_in_flight());
    return sum;
  }
  /// Whole blocks of every group end at its multiples: where shared blocks may end.
  std::uint32_t block_alignment() const {
    std::uint32_t unit = 1;
    for (const auto& group : kv.groups) unit = std::lcm(unit, group.block_size);
    return unit;
  }
  /// Whole chunks of every full-attention group (of every group if there is none) end at its multiples: where a
  /// tier's hits end.
  std::uint32_t chunk_alignment() const {
    std::uint32_t unit = 1, full_unit = 0;
    for (std::size_t g = 0; g < num_groups(); ++g) {
      unit = std::lcm(unit, tokens_per_chunk(g));
      if (!shape(g).is_window()) full_unit = std::lcm(full_unit == 0 ? 1 : full_unit, tokens_per_chunk(g));
    }
    return full_unit == 0 ? unit : full_unit;
  }
};

}  // namespace sluice::inline v0
