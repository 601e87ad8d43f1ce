// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// What the scheduler is told once. Checked by the runtime before it gets here.
struct scheduler_config {
  model_info model;
  kv_spec kv;                                ///< one full-attention group
  std::uint32_t num_device_blocks = 0;       ///< the null block included
  std::uint32_t num_host_slots = 0;          ///< 0: no host tier
  std::uint32_t blocks_per_chunk = 1;
  bool enable_prefix_caching = true;         ///< false: nothing is found, stored or loaded
  std::uint32_t max_model_len = 0;           ///< tokens
  std::uint32_t max_num_seqs = 256;          ///< running and loading requests
  std::uint32_t max_num_batched_tokens = 2048;

  std::uint32_t block_size(std::size_t group) const { return kv.groups[group].block_size; }
  std::size_t num_groups() const { return kv.groups.size(); }
  /// Blocks of `group` that hold `num_tokens` tokens.
  std::uint32_t num_blocks_for(std::size_t group, std::uint32_t num_tokens) const {
    return (num_tokens + block_size(group) - 1) / block_size(group);
  }
};

}  // namespace sluice::inline v0
