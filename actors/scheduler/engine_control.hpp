// SPDX-License-Identifier: Apache-2.0
//
// Pausing, sleeping and waking up.
//
//            pause, sleep                 at rest: caches cleared
//   running ──────────────▶ pausing ──────────────────────────────▶ paused
//      ▲                       │                                       │ sleep, and no transfer touches memory:
//      │        resume         │ resume                                │ memory given back
//      ├───────────────────────┴───────────────────────────────────────┤
//      │                 wake-up, all memory is back                   ▼
//      └──────────────────────────────────────────────────────────  sleeping
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// Decides when a control command is carried out and what it does to the state. Part of scheduler_core, which asks
/// `advance` between steps and sends what is left to send.
class engine_control {
 public:
  struct answer {
    std::uint64_t ticket;
    control_report report;
  };

  explicit engine_control(scheduler_state& state) : state_(state) {}

  control_state state() const { return now_; }

  /// Begins to pause; a pause or sleep that has not ended is cancelled. False when that cannot be now, and answered so.
  /// With mode `abort` the caller ends all requests.
  bool pause(const pause_engine& command, std::uint64_t ticket);
  bool sleep(const sleep_engine& command, std::uint64_t ticket);
  void resume(std::uint64_t ticket);
  /// Ends a sleep, also one that was not carried out; an engine that was only paused stays paused.
  void wake(const wake_engine& command, std::uint64_t ticket);
  /// The command has had its time. True when it was one of this class's.
  bool expire(std::uint64_t ticket);
  /// The executor's answer to a memory change.
  void memory_has_changed(const memory_changed& message);

  /// Goes as far as the state lets it. `is_step_open`: a step is in flight or its boundary is open.
  void advance(bool is_step_open);

  std::vector<answer> take_answers() { return std::exchange(answers_, {}); }
  std::optional<change_memory> take_memory_change() { return std::exchange(memory_change_, std::nullopt); }

 private:
  enum class stage : std::uint8_t {
    resting,          ///< waits for steps, loads and, by the mode, requests
    draining_stores,  ///< waits for transfers that still touch device memory
    changing_memory,  ///< waits for the executor
  };
  struct order {
    std::uint64_t ticket = 0;
    pause_mode mode = pause_mode::keep;
    bool clears_device = false, clears_tiers = false;
    std::uint32_t sleep_level = 0;  // 0: a pause
    bool is_wake = false;
    stage at = stage::resting;
    change_memory change;  ///< of changing_memory
    control_report report;
  };

  bool begin(order next);
  void change_memory_now(const change_memory& change);
  void finish(control_outcome outcome, std::string message = {});
  void answer_at_once(std::uint64_t ticket, control_outcome outcome, std::string message = {});
  bool is_at_rest(bool is_step_open) const;
  bool clear_caches();
  void go_on();

  scheduler_state& state_;
  control_state now_ = control_state::running;
  std::optional<order> order_;
  bool is_stopped_by_sleep_ = false;  // the last command that stopped the engine
  bool has_weights_ = true, has_kv_cache_ = true;
  std::vector<answer> answers_;
  std::optional<change_memory> memory_change_;
};

}  // namespace sluice::inline v0
