// SPDX-License-Identifier: Apache-2.0
//
// Which chunks of a sliding-window group can ever serve a hit. A hit ends where every group can end, at a multiple of
// the alignment; there the group needs the window before that boundary and nothing else. So a chunk is worth storing,
// or a block worth indexing, exactly if it holds one of the window's tokens before a boundary that is retained. That
// of a chunk's blocks is enough: the chunk is kept if any of its blocks would be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::inline v0 {

/// One window group. Its unit is a chunk of a tier, or a block of the device.
struct window_reach {
  std::uint32_t window_tokens = 1;  ///< a token and those before it that it sees
  std::uint32_t tokens_per_unit = 1;
  std::uint32_t alignment_tokens = 1;  ///< hits end at multiples of it
  /// Without, every boundary is retained; else those at multiples of the interval, none with 0. The last boundary at
  /// which the same prompt could be served again is always retained.
  std::optional<std::uint32_t> retention_interval_tokens;
};

enum class unit_reach : std::uint8_t {
  reachable,  ///< a boundary within the request's tokens needs it
  not_yet,    ///< the first boundary that needs it lies beyond the request's tokens
  never,
};

/// What `unit` is to a request that has `num_tokens` tokens, of which `num_prompt_tokens` are its prompt. Decoded
/// tokens reach further boundaries but do not move the replayed one, which belongs to the prompt: the end of a running
/// request is not an end. In constant time.
unit_reach reach_of(const window_reach& reach, std::uint32_t unit, std::uint32_t num_prompt_tokens,
                    std::uint32_t num_tokens);

/// The last boundary at which a prompt can be served again, 0 if none: its last token is always computed anew.
std::uint32_t replay_boundary(std::uint32_t num_prompt_tokens, std::uint32_t alignment_tokens);

/// What is wrong with a retention interval, in words; empty if it is absent, 0 or a multiple of the alignment.
std::string check_retention_interval(std::optional<std::int64_t> interval_tokens, std::uint32_t alignment_tokens);

}  // namespace sluice::inline v0
