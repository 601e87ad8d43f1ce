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
  /// After a message: what became findable or ceased to be. Never empty; only if the configuration asks for it.
  std::function<void(const std::vector<kv_event>&)> on_events = [](const std::vector<kv_event>&) {};
  /// The engine found its own state inconsistent; may end the process.
  std::function<void(const invariant_violation&)> on_violation = [](const invariant_violation&) {};
};

/// The actor around scheduler_core: messages in, messages out, and the promises and handles that go with them.
struct scheduler_actor_state {
  static constexpr const char* name = "scheduler";

  scheduler_actor_state(scheduler_actor::pointer self, std::unique_ptr<scheduler_core> core,
                        std::chrono::nanoseconds boundary_timeout, scheduler_hooks hooks);
  scheduler_actor::behavior_type make_behavior();

  template <class Answer>
  using promises = std::unordered_map<std::uint64_t, compat::response_promise<Answer>>;

  template <class Function>
  void after(Function&& change);
  template <class Answer, class Function>
  caf::result<Answer> ask(promises<Answer>& open, Function&& command);
  template <class Answer>
  void answer(promises<Answer>& open, std::uint64_t ticket, Answer& report);

  /// Sends what the core has to send.
  void progress();
  void send(stage_loads& message);
  void send(unstage_loads& message);
  void send(submit_loads& message);
  void send(submit_stores& message);
  void send(adoption& message);
  void send(step_boundary& message);
  void send(execute_step& message);
  void send(request_tokens& message);
  void send(request_finished& message);
  void send(reset_answer& message);
  void send(control_answer& message);
  void send(change_memory& message);
  template <class Message>
  void send(timer<Message>& message);
  void send(invariant_violation& message);

  scheduler_actor::pointer self;
  std::unique_ptr<scheduler_core> core;
  std::chrono::nanoseconds boundary_timeout;  ///< beyond every timeout of the handler's own
  scheduler_hooks hooks;
  connect_engine engine;
  std::unordered_map<request_id, request_actor> clients;  ///< handles are CAF's, the requests' records are not
  promises<reset_report> resets;
  promises<control_report> controls;
  std::uint64_t last_ticket = 0;
};

}  // namespace sluice::inline v0
