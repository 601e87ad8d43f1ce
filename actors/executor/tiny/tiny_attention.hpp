// SPDX-License-Identifier: Apache-2.0
//
// Grouped-query attention over the paged KV cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sluice/actors/executor/tiny/tiny_shape.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0::tiny {

/// The cache as kernels see it; a block is [layer][K, V][slot][kv_dim] floats. The memory is the block pool's.
struct kv_view {
  enum class part : std::uint8_t { key, value };

  std::byte* base = nullptr;
  std::size_t stride_bytes = 0;
  std::uint32_t block_size = 0;  ///< tokens per block

  /// The first row of a block: row of slot s at + s * kv_dim.
  float* rows(block_id block, std::size_t layer, part which) const {
    auto* first = reinterpret_cast<float*>(base + block.value * stride_bytes);
    return first + (layer * 2 + static_cast<std::size_t>(which)) * block_size * kv_dim;
  }

  float* row(std::span<const block_id> table, std::uint32_t position, std::size_t layer, part which) const {
    return rows(table[position / block_size], layer, which) + position % block_size * kv_dim;
  }
};

/// Attention of `queries[num_heads][head_dim]` over positions [0, num_positions) of one sequence, into
/// `output[num_heads][head_dim]`. `scores` is scratch of at least 2 * (num_positions + 3) floats.
void attend(const kv_view& cache, std::span<const block_id> table, std::size_t layer, std::uint32_t num_positions,
            const float* queries, std::span<float> scores, float* output);

}  // namespace sluice::inline v0::tiny
