// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/scheduler_actor.hpp>

#include <cassert>
#include <utility>

namespace sluice::inline v0 {

namespace {

/// Long enough for the supervisor to end the engine, short enough not to be noticed when the actor was only slow.
constexpr std::chrono::milliseconds lost_actor_pause{100};

/// For giving back or taking all device memory.
constexpr std::chrono::seconds memory_timeout{60};

}  // namespace

scheduler_actor_state::scheduler_actor_state(scheduler_actor::pointer self_pointer,
                                             std::unique_ptr<scheduler_core> scheduler,
                                             std::chrono::nanoseconds timeout, scheduler_hooks scheduler_hooks)
    : self(self_pointer), core(std::move(scheduler)), boundary_timeout(timeout), hooks(std::move(scheduler_hooks)) {}

scheduler_actor::behavior_type scheduler_actor_state::make_behavior() {
  return {
      [this](const connect_engine& message) { engine = message; },
      [this](const load_actor_replaced& message) {
        engine.loads = message.successor;
        after([&] { core->transfer_actor_replaced(transfer_direction::load); });
      },
      [this](const store_actor_replaced& message) {
        engine.stores = message.successor;
        after([&] { core->transfer_actor_replaced(transfer_direction::store); });
      },
      [this](const submit_request& message) {
        clients[message.params.id] = compat::sender_as<request_actor>(self);
        after([&] { core->submit(message); });
      },
      [this](const abort_request& message) { after([&] { core->abort(message); }); },
      [this](const finish_request& message) { after([&] { core->finish(message); }); },
      [this](const reset_prefix_cache& message) {
        return ask<reset_report>(resets, [&](std::uint64_t ticket) { core->reset(message, ticket); });
      },
      [this](const pause_engine& message) {
        return ask<control_report>(controls, [&](std::uint64_t ticket) { core->pause(message, ticket); });
      },
      [this](const resume_engine& message) {
        return ask<control_report>(controls, [&](std::uint64_t ticket) { core->resume(message, ticket); });
      },
      [this](const sleep_engine& message) {
        return ask<control_report>(controls, [&](std::uint64_t ticket) { core->sleep(message, ticket); });
      },
      [this](const wake_engine& message) {
        return ask<control_report>(controls, [&](std::uint64_t ticket) { core->wake(message, ticket); });
      },
      [this](const snapshot_query&) -> caf::result<engine_snapshot> { return core->snapshot(); },
      [this](const integrity_query&) -> caf::result<integrity_report> { return integrity_report{core->check()}; },
      [this](const step_enqueued& message) { after([&] { core->enqueued(message); }); },
      [this](const step_result& message) { after([&] { core->result(message); }); },
      [this](const step_failed& message) { after([&] { core->failed(message); }); },
      [this](const transfers_settled& message) { after([&] { core->settled(message); }); },
      [this](const lookups_answered& message) { after([&] { core->lookups_have_answers(message); }); },
      [this](const check_transfers& message) { after([&] { core->expired(message); }); },
      [this](const wait_expired& message) { after([&] { core->expired(message); }); },
      [this](const control_expired& message) { after([&] { core->expired(message); }); },
      [this](const plan_again&) { after([&] { core->plan_again(); }); },
  };
}

template <class Function>
void scheduler_actor_state::after(Function&& change) {
  change();
  progress();
}

/// Gives the command a ticket, under which its answer will come.
template <class Answer, class Function>
caf::result<Answer> scheduler_actor_state::ask(promises<Answer>& open, Function&& command) {
  auto promise = compat::make_response_promise<Answer>(self);
  open.emplace(++last_ticket, promise);
  after([&] { command(last_ticket); });
  return promise;
}

template <class Answer>
void scheduler_actor_state::answer(promises<Answer>& open, std::uint64_t ticket, Answer& report) {
  auto found = open.find(ticket);
  assert(found != open.end());
  auto promise = std::move(found->second);
  open.erase(found);
  compat::deliver(promise, std::move(report));
}

void scheduler_actor_state::send(stage_loads& message) { compat::mail(self, std::move(message)).send(engine.loads); }
void scheduler_actor_state::send(unstage_loads& message) { compat::mail(self, message).send(engine.loads); }
void scheduler_actor_state::send(submit_loads& message) { compat::mail(self, std::move(message)).send(engine.loads); }
void scheduler_actor_state::send(submit_stores& message) { compat::mail(self, std::move(message)).send(engine.stores); }
void scheduler_actor_state::send(execute_step& message) { compat::mail(self, std::move(message)).send(engine.executor); }

/// The successor's first message. Only then the handler, which is yet to send it flushes and queries, hears of it.
void scheduler_actor_state::send(adoption& message) {
  switch (message.direction) {
    case transfer_direction::load:
      compat::mail(self, std::move(message.transfers)).send(engine.loads);
      compat::mail(self, load_actor_replaced{engine.loads}).send(engine.handler);
      break;
    case transfer_direction::store:
      compat::mail(self, std::move(message.transfers)).send(engine.stores);
      compat::mail(self, store_actor_replaced{engine.stores}).send(engine.handler);
      break;
  }
}

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

void scheduler_actor_state::send(reset_answer& message) { answer(resets, message.ticket, message.report); }
void scheduler_actor_state::send(control_answer& message) { answer(controls, message.ticket, message.report); }

void scheduler_actor_state::send(change_memory& message) {
  compat::mail(self, message)
      .request(engine.executor, memory_timeout)
      .then([this](const memory_changed& answer) { after([&] { core->memory_has_changed(answer); }); },
            [this](const caf::error&) {
              after([&] { core->memory_has_changed({errc::device_failed, "the executor did not answer"}); });
            });
}

template <class Message>
void scheduler_actor_state::send(timer<Message>& message) {
  compat::mail(self, std::move(message.message)).delay(message.after).send(scheduler_actor{self});
}

void scheduler_actor_state::send(invariant_violation& message) { hooks.on_violation(message); }

void scheduler_actor_state::progress() {
  if (const auto events = core->take_events(); !events.empty()) hooks.on_events(events);
  hooks.on_progress(*core);  // first: who gets an answer finds numbers that fit it
  for (auto& message : core->take_outgoing()) std::visit([this](auto& value) { send(value); }, message);
#ifndef NDEBUG
  if (core->is_idle())
    for (auto& fault : core->check()) hooks.on_violation({{}, std::move(fault)});
#endif
}

}  // namespace sluice::inline v0
