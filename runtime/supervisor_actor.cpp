// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/supervisor_actor.hpp>

#include <exception>
#include <utility>

namespace sluice::inline v0 {

namespace {

std::string why(const caf::error& reason) {
  if (auto told = compat::context_of<std::string>(reason); !told.empty()) return told;
  return reason ? caf::deep_to_string(reason) : "it quit";
}

}  // namespace

supervisor_actor_state::supervisor_actor_state(supervisor_actor::pointer self_pointer, supervised_engine supervised,
                                               supervisor_options supervisor_options)
    : self(self_pointer), engine(std::move(supervised)), options(std::move(supervisor_options)) {}

supervisor_actor::behavior_type supervisor_actor_state::make_behavior() {
  watch(engine.scheduler, "scheduler");
  watch(engine.actors.handler, "preemption handler");
  watch(engine.actors.executor, "executor");
  watch_loads();
  watch_stores();
  return {[this](const stop_watching&) {
    is_watching = false;
    end_all();
    self->quit();
  }};
}

template <class Handle>
void supervisor_actor_state::watch(const Handle& actor, std::string actor_name) {
  monitors.add(actor, [this, actor_name = std::move(actor_name)](const caf::error& reason) {
    fail(actor_name, why(reason));
  });
}

void supervisor_actor_state::watch_loads() {
  monitors.add(engine.actors.loads, [this](const caf::error& reason) {
    restart("load actor", reason, [this] {
      engine.actors.loads = engine.make_loads();
      compat::mail(self, load_actor_replaced{engine.actors.loads}).send(engine.scheduler);
      watch_loads();
    });
  });
}

void supervisor_actor_state::watch_stores() {
  monitors.add(engine.actors.stores, [this](const caf::error& reason) {
    restart("store actor", reason, [this] {
      engine.actors.stores = engine.make_stores();
      compat::mail(self, store_actor_replaced{engine.actors.stores}).send(engine.scheduler);
      watch_stores();
    });
  });
}

template <class Function>
void supervisor_actor_state::restart(const std::string& actor_name, const caf::error& reason, Function&& replace) {
  if (!is_watching) return;
  if (!may_restart()) return fail(actor_name, "too often, the last time because: " + why(reason));
  try {
    replace();
  } catch (const std::exception& failure) {
    return fail(actor_name, why(reason) + "; it could not be replaced: " + failure.what());
  }
  options.on_restart("the " + actor_name + " ended and was replaced: " + why(reason));
}

bool supervisor_actor_state::may_restart() {
  const auto now = self->clock().now();
  while (!restarts.empty() && now - restarts.front() > options.restart_window) restarts.pop_front();
  if (restarts.size() >= options.max_restarts) return false;
  restarts.push_back(now);
  return true;
}

void supervisor_actor_state::fail(const std::string& actor_name, const std::string& reason) {
  if (!std::exchange(is_watching, false)) return;
  options.on_failure({errc::engine_failed, "the " + actor_name + " ended: " + reason});
  // Without that actor it may wait for ever; its end answers every question that it holds.
  compat::send_exit(engine.scheduler, caf::make_error(caf::exit_reason::user_shutdown));
}

void supervisor_actor_state::end_all() {
  const auto reason = caf::make_error(caf::exit_reason::user_shutdown);
  compat::send_exit(engine.scheduler, reason);
  compat::send_exit(engine.actors.handler, reason);
  compat::send_exit(engine.actors.executor, reason);
  compat::send_exit(engine.actors.loads, reason);
  compat::send_exit(engine.actors.stores, reason);
}

}  // namespace sluice::inline v0
