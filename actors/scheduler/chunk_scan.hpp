// SPDX-License-Identifier: Apache-2.0
//
// How much of a request a tier can serve: pure functions that turn one verdict per chunk into one answer. Chunks of
// one request and group are counted from 0; an `end` is exclusive.
//
//   verdict    full attention                           sliding window
//   hit        the run goes on                          the run goes on
//   pending    the run goes on; wait, or recompute      the run goes on; wait if it is the one that is used
//   retry      the run goes on; wait                    wait; every chunk further left is asked as well
//   miss       the scan ends                            a new run begins on its left
#pragma once

#include <cstdint>
#include <functional>

#include <sluice/actors/scheduler/tier_index.hpp>

namespace sluice::inline v0 {

/// What a scan found. Only a known one says how much can be used.
struct scan_outcome {
  enum class kind : std::uint8_t {
    known,          ///< chunks up to `end` can be used now
    awaits_store,   ///< a chunk worth waiting for is pending
    awaits_lookup,  ///< the tier has not answered for a chunk; others may be pending as well
  };

  kind result = kind::known;
  std::uint32_t end = 0;            ///< of a known one, else 0
  std::uint32_t awaited_chunk = 0;  ///< the last pending chunk of the run that counts, or the first to be asked again

  bool is_known() const { return result == kind::known; }

  friend bool operator==(const scan_outcome&, const scan_outcome&) = default;
};

using chunk_lookup = std::function<lookup_verdict(std::uint32_t chunk)>;

/// Full attention: asks chunks [first, last) from left to right, up to the first miss. Behind pending and unanswered
/// chunks the scan goes on, so that a tier can prepare answers. If the run from its first pending chunk to its end is
/// at most `recompute_budget` chunks long, it is cut there in place of waiting; an unanswered chunk is always waited
/// for. A known answer lies in [first, last].
scan_outcome scan_prefix(std::uint32_t first, std::uint32_t last, std::uint32_t recompute_budget,
                         const chunk_lookup& lookup);

/// Sliding window: asks chunks [0, num_chunks) from right to left for the rightmost run that fills a window, and
/// answers that run's end. A window that ends with the last chunk needs `needed_at_end` chunks, which is `needed` or
/// one more (where the hit ends inside that chunk); others need `needed`. A run that reaches chunk 0 suffices however
/// short it is: its window begins before the sequence. A pending chunk makes the answer wait only if the run that
/// suffices contains it.
scan_outcome scan_window(std::uint32_t num_chunks, std::uint32_t needed, std::uint32_t needed_at_end,
                         const chunk_lookup& lookup);

/// Chunks of `tokens_per_chunk` tokens that a window of `window_tokens`, its own token included, needs before a chunk
/// boundary; none for a window of one token.
std::uint32_t window_chunks(std::uint32_t window_tokens, std::uint32_t tokens_per_chunk);

/// The same before any position: chunks that hold one of the `window_tokens` - 1 tokens before `end_tokens`.
std::uint32_t window_chunks_before(std::uint32_t end_tokens, std::uint32_t window_tokens,
                                   std::uint32_t tokens_per_chunk);

}  // namespace sluice::inline v0
