// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// Watches the engine's actors. The end of any of them is reported once, with the actor's name and the reason, and
/// ends the scheduler, so that whoever waits for an answer hears of it.
struct supervisor_actor_state {
  static constexpr const char* name = "supervisor";
  using failure_callback = std::function<void(const error&)>;

  supervisor_actor_state(supervisor_actor::pointer self, scheduler_actor scheduler, connect_engine engine,
                         failure_callback on_failure);
  supervisor_actor::behavior_type make_behavior();

  template <class Handle>
  void watch(const Handle& actor, std::string actor_name);
  void report(const std::string& actor_name, const caf::error& reason);

  supervisor_actor::pointer self;
  scheduler_actor scheduler;
  connect_engine engine;
  failure_callback on_failure;
  bool is_watching = true;
  compat::monitors monitors{self};
};

}  // namespace sluice::inline v0
