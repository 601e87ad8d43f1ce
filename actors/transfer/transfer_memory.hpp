// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/gpu/device.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Where blocks and slots lie. A slot holds the blocks of one chunk one after another, each with its segments one
/// after another.
struct transfer_memory {
  kv_memory device;
  gpu::memory_view tier;                ///< the tier's arena
  std::size_t bytes_per_block = 0;      ///< sum over a group's segments
  std::uint32_t blocks_per_chunk = 1;

  std::size_t slot_bytes() const { return bytes_per_block * blocks_per_chunk; }
};

/// The physical copies of a job, and how many of them belong to each of its block copies.
struct physical_copies {
  gpu::copy_batch batch;
  std::vector<std::uint32_t> num_per_block_copy;
};

/// Runs of adjacent blocks become one copy where the group's memory is one contiguous segment.
physical_copies make_physical_copies(const transfer_memory& memory, const transfer_job& job,
                                     transfer_direction direction);

/// How many leading block copies are wholly inside the first `num_good_copies` physical ones.
std::uint32_t num_good_block_copies(const std::vector<std::uint32_t>& num_per_block_copy, std::size_t num_good_copies);

}  // namespace sluice::inline v0
