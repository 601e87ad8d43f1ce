// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::inline v0 {

/// Arithmetic on one KV group: which of a sequence's blocks hold and read what. Positions and tokens count from 0;
/// ranges are half-open.
struct group_shape {
  std::uint32_t block_size = 0;      ///< tokens
  std::uint32_t window_tokens = 0;   ///< 0: full attention
  std::uint32_t blocks_per_chunk = 1;

  bool is_window() const { return window_tokens > 0; }
  std::uint32_t tokens_per_chunk() const { return block_size * blocks_per_chunk; }

  /// Blocks that hold the first `num_tokens` tokens.
  std::uint32_t num_blocks_for(std::uint32_t num_tokens) const { return (num_tokens + block_size - 1) / block_size; }

  /// The first block that is read to compute `position`: a window reads itself and window_tokens - 1 positions before.
  std::uint32_t first_block_read_at(std::uint32_t position) const {
    if (!is_window() || position < window_tokens) return 0;
    return (position - window_tokens + 1) / block_size;
  }

  /// Chunks that must be there to go on at a multiple of the chunk, far enough from the beginning.
  std::uint32_t num_window_chunks() const {
    return (window_tokens - 1 + tokens_per_chunk() - 1) / tokens_per_chunk();
  }

  /// The most blocks that a sequence of `num_tokens` holds at once while up to `num_in_flight` of them are being
  /// computed. A window gives up what it has passed, but for the blocks of a chunk that is not complete yet.
  std::uint32_t num_blocks_at_most(std::uint32_t num_tokens, std::uint64_t num_in_flight) const {
    const auto all = num_blocks_for(num_tokens);
    if (!is_window()) return all;
    const auto in_window = (window_tokens - 1 + num_in_flight + block_size - 1) / block_size + blocks_per_chunk;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, in_window));
  }
};

}  // namespace sluice::inline v0
