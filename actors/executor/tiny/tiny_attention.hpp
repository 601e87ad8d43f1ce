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

/// One KV group's cache as kernels see it; a block is [layer of the group][K, V][slot][kv_dim] floats. The memory is
/// the block pool's.
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

/// One sequence's part of one KV group.
struct sequence_kv {
  kv_view cache;
  std::span<const block_id> table;
};

/// Positions [first, end) of one sequence in one layer; table entries before them are not looked at.
struct attended_rows {
  const sequence_kv& sequence;
  std::size_t layer;  ///< of the group
  std::uint32_t first;
  std::uint32_t end;
};

/// Attention of `queries[num_heads][head_dim]` over `rows`, into `output[num_heads][head_dim]`. `scores` is scratch of
/// at least 2 * (end - first + 3) floats. To the bit a function of the rows' contents in order of position.
void attend(const attended_rows& rows, const float* queries, std::span<float> scores, float* output);

}  // namespace sluice::inline v0::tiny
