// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/supervisor_actor.hpp>

#include <utility>

namespace sluice::inline v0 {

supervisor_actor_state::supervisor_actor_state(supervisor_actor::pointer self_pointer, scheduler_actor scheduler_handle,
                                               connect_engine handles, failure_callback callback)
    : self(self_pointer), scheduler(std::move(scheduler_handle)), engine(std::move(handles)),
      on_failure(std::move(callback)) {}

supervisor_actor::behavior_type supervisor_actor_state::make_behavior() {
  watch(scheduler, "scheduler");
  watch(engine.loads, "load actor");
  watch(engine.stores, "store actor");
  watch(engine.handler, "preemption handler");
  watch(engine.executor, "executor");
  return {[this](const stop_watching&) {
    is_watching = false;
    self->quit();
  }};
}

template <class Handle>
void supervisor_actor_state::watch(const Handle& actor, std::string actor_name) {
  monitors.add(actor, [this, actor_name = std::move(actor_name)](const caf::error& reason) {
    report(actor_name, reason);
  });
}

void supervisor_actor_state::report(const std::string& actor_name, const caf::error& reason) {
  if (!std::exchange(is_watching, false)) return;
  auto why = compat::context_of<std::string>(reason);
  if (why.empty()) why = reason ? caf::deep_to_string(reason) : "it quit";
  on_failure({errc::engine_failed, "the " + actor_name + " ended: " + why});
  // Without that actor it may wait for ever; its end answers every question that it holds.
  compat::send_exit(scheduler, caf::make_error(caf::exit_reason::user_shutdown));
}

}  // namespace sluice::inline v0
