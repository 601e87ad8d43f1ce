// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Where the time of a step goes.
enum class step_part : std::uint8_t {
  apply,     ///< what arrived, and the plan, are carried into the state
  plan,
  boundary,  ///< from its opening to its answer; only steps that have one
  execute,   ///< from dispatch to the result, the wait for an earlier step included
  commit
};

/// Hears what the scheduler measures. Called on the scheduler's thread, many times a step: must neither block nor
/// throw.
class engine_observer {
 public:
  virtual ~engine_observer() = default;

  virtual void step_part_took(step_part, std::chrono::nanoseconds) {}
  /// From submission to the dispatch of the request's first step or load; once per request.
  virtual void request_was_queued(std::chrono::nanoseconds) {}
  /// All lookups in the tier for one consideration of a request. Requests that need nothing of the tier make none.
  virtual void tier_lookup_took(std::chrono::nanoseconds) {}
  /// The copies of a transfer ended well.
  virtual void transfer_took(transfer_direction, std::uint64_t /*bytes*/, std::chrono::nanoseconds) {}
};

/// Ignores everything.
inline engine_observer& nobody() {
  static engine_observer ignores;
  return ignores;
}

/// Time since it was made or last read.
class stopwatch {
 public:
  using clock = std::chrono::steady_clock;

  std::chrono::nanoseconds lap() {
    const auto now = clock::now();
    return now - std::exchange(start_, now);
  }
  std::chrono::nanoseconds elapsed() const { return clock::now() - start_; }

 private:
  clock::time_point start_ = clock::now();
};

}  // namespace sluice::inline v0
