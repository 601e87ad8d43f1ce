// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/scheduler_actor.hpp>

#include <cassert>
#include <utility>

namespace sluice::inline v0 {

namespace {

/// Long enough for the supervisor to end the engine, short enough not to be noticed when the actor was only slow.
constexpr std::chrono::milliseconds lost_actor_pause{100};

}  // namespace

scheduler_actor_state::scheduler_actor_state(scheduler_actor::pointer self_pointer,
                                             std::unique_ptr<scheduler_core> scheduler,
                                             std::chrono::nanoseconds timeout, scheduler_hooks scheduler_hooks)
    : self(self_pointer), core(std::move(scheduler)), boundary_timeout(timeout), hooks(std::move(scheduler_hooks)) {}

scheduler_actor::behavior_type scheduler_actor_state::make_behavior() {
  return {
      [this](const connect_engine& message) { engine = message; },
      [this](const submit_request& message) {
        clients[message.params.id] = compat::sender_as<request_actor>(self);
        core->submit(message);
        progress();
      },
      [this](const abort_request& message) {
        core->abort(message);
        progress();
      },
      [this](const finish_request& message) {
        core->finish(message);
        progress();
      },
      [this](const reset_prefix_cache& message) -> caf::result<reset_report> {
        auto promise = compat::make_response_promise<reset_report>(self);
        resets.emplace(++last_ticket, promise);
        core->reset(message, last_ticket);
        progress();
        return promise;
      },
      [this](const snapshot_query&) -> caf::result<engine_snapshot> { return core->snapshot(); },
      [this](const integrity_query&) -> caf::result<integrity_report> { return integrity_report{core->check()}; },
      [this](const step_enqueued& message) {
        core->enqueued(message);
        progress();
      },
      [this](const step_result& message) {
        core->result(message);
        progress();
      },
      [this](const step_failed& message) {
        core->failed(message);
        progress();
      },
      [this](const transfers_settled& message) {
        core->settled(message);
        progress();
      },
      [this](const plan_again&) {
        core->plan_again();
        progress();
      },
  };
}

void scheduler_actor_state::progress() {
  for (auto& message : core->take_outgoing()) std::visit([this](auto& value) { send(value); }, message);
  hooks.on_progress(*core);
#ifndef NDEBUG
  if (core->is_idle())
    for (auto& fault : core->check()) hooks.on_violation({{}, std::move(fault)});
#endif
}

void scheduler_actor_state::send(stage_loads& message) { compat::mail(self, std::move(message)).send(engine.loads); }
void scheduler_actor_state::send(unstage_loads& message) { compat::mail(self, message).send(engine.loads); }
void scheduler_actor_state::send(submit_loads& message) { compat::mail(self, std::move(message)).send(engine.loads); }
void scheduler_actor_state::send(submit_stores& message) { compat::mail(self, std::move(message)).send(engine.stores); }
void scheduler_actor_state::send(execute_step& message) { compat::mail(self, std::move(message)).send(engine.executor); }

void scheduler_actor_state::send(step_boundary& message) {
  const auto step = message.step;
  compat::mail(self, std::move(message))
      .request(engine.handler, boundary_timeout)
      .then(
          [this](const boundary_cleared& answer) {
            core->cleared(answer);
            progress();
          },
          [this, step](const caf::error& reason) {
            const auto code = compat::code_of<errc>(reason).value_or(errc::transfer_actor_lost);
            core->boundary_failed(step, code, compat::context_of<std::vector<transfer_id>>(reason));
            if (code == errc::transfer_actor_lost)
              compat::mail(self, plan_again{}).delay(lost_actor_pause).send(scheduler_actor{self});
            progress();
          });
}

void scheduler_actor_state::send(request_tokens& message) {
  if (auto found = clients.find(message.request); found != clients.end())
    compat::mail(self, std::move(message)).send(found->second);
}

void scheduler_actor_state::send(request_finished& message) {
  auto found = clients.find(message.request);
  if (found == clients.end()) return;
  const auto client = std::move(found->second);
  clients.erase(found);
  compat::mail(self, std::move(message)).send(client);
}

void scheduler_actor_state::send(reset_answer& message) {
  auto found = resets.find(message.ticket);
  assert(found != resets.end());
  auto promise = std::move(found->second);
  resets.erase(found);
  compat::deliver(promise, std::move(message.report));
}

void scheduler_actor_state::send(invariant_violation& message) { hooks.on_violation(message); }

}  // namespace sluice::inline v0
