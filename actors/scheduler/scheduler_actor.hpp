// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <unordered_map>

#include <sluice/actors/scheduler/scheduler_core.hpp>
#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// What the scheduler tells the outside while it works. Called on the scheduler's thread; must not block.
struct scheduler_hooks {
  /// After every message: the state's numbers.
  std::function<void(const scheduler_core&)> on_progress = [](const scheduler_core&) {};
  /// The engine found its own state inconsistent; may end the process.
  std::function<void(const invariant_violation&)> on_violation = [](const invariant_violation&) {};
};

/// The actor around scheduler_core: messages in, messages out, and the promises and handles that go with them.
struct scheduler_actor_state {
  static constexpr const char* name = "scheduler";

  scheduler_actor_state(scheduler_actor::pointer self, std::unique_ptr<scheduler_core> core,
                        std::chrono::nanoseconds boundary_timeout, scheduler_hooks hooks);
  scheduler_actor::behavior_type make_behavior();

  void progress();
  void send(stage_loads& message);
  void send(unstage_loads& message);
  void send(submit_loads& message);
  void send(submit_stores& message);
  void send(step_boundary& message);
  void send(execute_step& message);
  void send(request_tokens& message);
  void send(request_finished& message);
  void send(reset_answer& message);
  void send(invariant_violation& message);

  scheduler_actor::pointer self;
  std::unique_ptr<scheduler_core> core;
  std::chrono::nanoseconds boundary_timeout;  ///< beyond every timeout of the handler's own
  scheduler_hooks hooks;
  connect_engine engine;
  std::unordered_map<request_id, request_actor> clients;
  std::unordered_map<std::uint64_t, compat::response_promise<reset_report>> resets;
  std::uint64_t last_ticket = 0;
};

}  // namespace sluice::inline v0
