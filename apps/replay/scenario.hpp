// SPDX-License-Identifier: Apache-2.0
//
// The stories that are replayed. Each is bounded in count and time and throws replay_error with the reason as soon
// as anything differs from what must hold.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/engine_client.hpp"
#include "replay/report.hpp"

namespace sluice::replay {

struct scenario_context {
  const engine_client& engine;
  report& out;
  std::uint64_t seed = 0;  ///< of prompts and random moments
};

struct scenario {
  std::string_view name;
  std::vector<std::string_view> server_options;  ///< what it needs of the server
  void (*run)(scenario_context& context);
};

/// All scenarios in the order in which `all` runs them.
std::span<const scenario> all_scenarios();

/// A reset that lands while the KV of two streams is being loaded is refused, and nobody notices.
void run_strict(scenario_context& context);

/// A reset at a random moment; whatever it does, every stream completes with the tokens it would have had.
void run_plain(scenario_context& context);

/// A reset preempts running requests; the step that reports it brings one back with a load of its own.
void run_same_step(scenario_context& context);

/// More concurrent streams than the pool holds: preempted and resumed, each has the tokens it has alone.
void run_pressure(scenario_context& context);

/// Fifty streams want one long prefix that is on the host tier only: one load, joined by all.
void run_convoy(scenario_context& context);

/// Pauses and sleeps that keep their requests: silence, then the same tokens, with no more work than what was cleared.
void run_pause_keep(scenario_context& context);

/// A counter's value as text.
std::string count(double number);

/// An attempt whose reset missed what it was to meet is repeated; this many attempts in all fail the trial.
inline constexpr std::size_t max_attempts = 6;

}  // namespace sluice::replay
