// SPDX-License-Identifier: Apache-2.0
//
// What a scenario asks of the server beside completions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/completion.hpp"
#include "replay/http_client.hpp"
#include "replay/metrics_page.hpp"

namespace sluice::replay {

/// The reply to a reset of the device cache.
struct reset_reply {
  bool success = false;
  std::vector<std::uint64_t> held_by_loads;
  std::uint64_t held_by_running_requests = 0;
  std::uint64_t num_stores_in_flight = 0;
};

/// Throws replay_error when `body` is not the JSON that API.md promises.
reset_reply parse_reset_reply(std::string_view body);

/// What the server had counted at one moment. Each only grows.
struct engine_counters {
  double loaded_bytes = 0;  ///< from the host tier
  double stored_bytes = 0;  ///< to the host tier
  double preemptions = 0;   ///< of any cause
  double reset_preemptions = 0;
  double capacity_preemptions = 0;
  double pause_preemptions = 0;
  double excluded_loads = 0;  ///< loads that a boundary of their own step left out of its flush
  double loads = 0;           ///< that settled, however
  double steps = 0;
  double hit_tokens = 0;  ///< of prompts, in either cache
  double sampled_tokens = 0;
  double recomputed_tokens = 0;
};

/// Throws replay_error when an answer is not the one that must come, or not in time. Any thread may call.
class engine_client {
 public:
  /// Asks the server for the name of its model.
  explicit engine_client(const http_client& http);

  const http_client& http() const { return http_; }
  const std::string& model() const { return model_; }

  metrics_page metrics() const;
  engine_counters counters() const;

  /// Resets the device cache; the status must be 200.
  reset_reply reset_device_cache(bool reset_running_requests) const;

  /// Empties the device and the host tier; an idle server does not refuse.
  void reset_all_caches() const;

  // Control. Each throws unless the server did what it was asked.

  /// With mode keep: requests stay, and stop.
  void pause(bool clears_device, bool clears_tier) const;
  void resume() const;
  /// With mode keep.
  void sleep(int level, bool clears_tier) const;
  /// `tags`: weights, kv_cache, or both, separated by a comma. Returns whether the engine is awake.
  bool wake_up(std::string_view tags) const;
  bool is_paused() const { return ask_state("/is_paused", "is_paused"); }
  bool is_sleeping() const { return ask_state("/is_sleeping", "is_sleeping"); }

  /// Runs a completion to its end; it must be complete and of the right length.
  completion complete(const completion_request& request) const;

  /// Waits until there is neither a request nor a transfer.
  void wait_until_idle() const;

  /// Waits until a load is in flight; false when none was seen within `timeout`.
  bool wait_for_load(std::chrono::milliseconds timeout) const;

  /// Waits until no transfer is in flight; false when one still was after `timeout`.
  bool wait_for_no_transfer(std::chrono::milliseconds timeout) const;

  /// `/health` says 200 and a short completion succeeds.
  void check_health() const;

 private:
  /// The `status` of the answer to a control command.
  std::string command(const std::string& target) const;
  bool ask_state(const std::string& target, const char* name) const;

  http_client http_;
  std::string model_;
};

}  // namespace sluice::replay
