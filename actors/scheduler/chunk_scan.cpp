// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/chunk_scan.hpp>

#include <algorithm>

namespace sluice::inline v0 {

namespace {

using kind = scan_outcome::kind;

std::uint32_t ceil_divide(std::uint32_t a, std::uint32_t b) { return a / b + (a % b != 0); }

constexpr std::uint32_t no_chunk = ~std::uint32_t{0};

/// Chunks that keep a run from being known: by position; a retry in the order asked.
struct open_chunks {
  std::uint32_t first_pending = no_chunk, last_pending = no_chunk, first_retry = no_chunk;

  bool has_pending() const { return last_pending != no_chunk; }
  bool has_retry() const { return first_retry != no_chunk; }

  void note(lookup_verdict verdict, std::uint32_t chunk) {
    if (verdict == lookup_verdict::retry && !has_retry()) first_retry = chunk;
    if (verdict != lookup_verdict::pending) return;
    first_pending = std::min(first_pending, chunk);
    last_pending = last_pending == no_chunk ? chunk : std::max(last_pending, chunk);
  }

  void forget_pending() { first_pending = last_pending = no_chunk; }

  scan_outcome outcome(std::uint32_t end) const {
    if (has_retry()) return {kind::awaits_lookup, 0, first_retry};
    if (has_pending()) return {kind::awaits_store, 0, last_pending};
    return {kind::known, end, 0};
  }
};

}  // namespace

scan_outcome scan_prefix(std::uint32_t first, std::uint32_t last, std::uint32_t recompute_budget,
                         const chunk_lookup& lookup) {
  open_chunks open;
  auto end = first;
  for (; end < last; ++end) {
    const auto verdict = lookup(end);
    if (verdict == lookup_verdict::miss) break;
    open.note(verdict, end);
  }
  const bool is_cut = !open.has_retry() && open.has_pending() && end - open.first_pending <= recompute_budget;
  if (is_cut) return {kind::known, open.first_pending, 0};
  return open.outcome(end);
}

scan_outcome scan_window(std::uint32_t num_chunks, std::uint32_t needed, std::uint32_t needed_at_end,
                         const chunk_lookup& lookup) {
  open_chunks open;
  auto begin = num_chunks, end = num_chunks;  // the run so far
  while (begin > 0) {
    const bool suffices = end - begin >= (end == num_chunks ? needed_at_end : needed);
    if (suffices && !open.has_retry()) break;
    const auto verdict = lookup(--begin);
    open.note(verdict, begin);
    if (verdict != lookup_verdict::miss) continue;
    end = begin;
    open.forget_pending();
  }
  return open.outcome(end);
}

std::uint32_t window_chunks(std::uint32_t window_tokens, std::uint32_t tokens_per_chunk) {
  return window_tokens <= 1 ? 0 : ceil_divide(window_tokens - 1, tokens_per_chunk);
}

std::uint32_t window_chunks_before(std::uint32_t end_tokens, std::uint32_t window_tokens,
                                   std::uint32_t tokens_per_chunk) {
  const auto num_tokens = window_tokens <= 1 ? 0 : std::min(end_tokens, window_tokens - 1);
  if (num_tokens == 0) return 0;
  return ceil_divide(end_tokens, tokens_per_chunk) - (end_tokens - num_tokens) / tokens_per_chunk;
}

}  // namespace sluice::inline v0
