// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/window_reach.hpp>

namespace sluice::inline v0 {

unit_reach reach_of(const window_reach& reach, std::uint32_t unit, std::uint32_t num_prompt_tokens,
                    std::uint32_t num_tokens) {
  if (reach.window_tokens <= 1) return unit_reach::never;
  const auto first_token = std::uint64_t{unit} * reach.tokens_per_unit;
  // The window before a boundary, [boundary - window + 1, boundary), meets the unit.
  const auto last_boundary = first_token + reach.tokens_per_unit + reach.window_tokens - 2;
  auto is_needed_at = [&](std::uint64_t boundary) { return first_token < boundary && boundary <= last_boundary; };
  if (is_needed_at(replay_boundary(num_prompt_tokens, reach.alignment_tokens))) return unit_reach::reachable;
  const auto interval = reach.retention_interval_tokens.value_or(reach.alignment_tokens);
  if (interval == 0) return unit_reach::never;
  const auto next_boundary = (first_token / interval + 1) * interval;
  if (!is_needed_at(next_boundary)) return unit_reach::never;
  return next_boundary <= num_tokens ? unit_reach::reachable : unit_reach::not_yet;
}

std::uint32_t replay_boundary(std::uint32_t num_prompt_tokens, std::uint32_t alignment_tokens) {
  return num_prompt_tokens == 0 ? 0 : (num_prompt_tokens - 1) / alignment_tokens * alignment_tokens;
}

std::string check_retention_interval(std::optional<std::int64_t> interval_tokens, std::uint32_t alignment_tokens) {
  if (!interval_tokens || *interval_tokens == 0) return {};
  const auto text = "retention interval of " + std::to_string(*interval_tokens) + " tokens ";
  if (*interval_tokens < 0) return text + "is negative";
  if (*interval_tokens > UINT32_MAX) return text + "is too large";
  if (*interval_tokens % alignment_tokens == 0) return {};
  return text + "is not a multiple of " + std::to_string(alignment_tokens) + " tokens, at which hits end";
}

}  // namespace sluice::inline v0
