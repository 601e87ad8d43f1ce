// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// What a supervisor watches, and how to make what it may restart.
struct supervised_engine {
  scheduler_actor scheduler;
  connect_engine actors;
  std::function<load_actor()> make_loads;    ///< on the stream of the one before
  std::function<store_actor()> make_stores;
};

struct supervisor_options {
  std::uint32_t max_restarts = 10;  ///< of load and store actors together, within the window; one more ends the engine
  std::chrono::nanoseconds restart_window = std::chrono::minutes{1};
  std::function<void(const error&)> on_failure;             ///< the engine ended; once
  std::function<void(const std::string&)> on_restart = [](const std::string&) {};  ///< of whom and why, in words
};

/// Watches the engine's actors. A load or store actor that ends gets a successor, and the scheduler is told. The end of
/// any other, and of transfer actors that end too often, is reported once with the actor's name and the reason, and
/// ends the scheduler, so that whoever waits for an answer hears of it.
struct supervisor_actor_state {
  static constexpr const char* name = "supervisor";

  supervisor_actor_state(supervisor_actor::pointer self, supervised_engine engine, supervisor_options options);
  supervisor_actor::behavior_type make_behavior();

  template <class Handle>
  void watch(const Handle& actor, std::string actor_name);
  void watch_loads();
  void watch_stores();
  /// Runs `replace` unless there were too many restarts.
  template <class Function>
  void restart(const std::string& actor_name, const caf::error& reason, Function&& replace);
  bool may_restart();
  void fail(const std::string& actor_name, const std::string& why);
  void end_all();

  supervisor_actor::pointer self;
  supervised_engine engine;
  supervisor_options options;
  bool is_watching = true;
  std::deque<std::chrono::steady_clock::time_point> restarts;  // within the window
  compat::monitors monitors{self};
};

}  // namespace sluice::inline v0
