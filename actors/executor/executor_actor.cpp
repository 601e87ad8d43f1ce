// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/executor_actor.hpp>

#include <utility>

namespace sluice::inline v0 {

executor_actor_state::executor_actor_state(executor_actor::pointer self_pointer, scheduler_actor scheduler_handle,
                                           model_executor* executor, stream_lease lease)
    : self(self_pointer), scheduler(std::move(scheduler_handle)), model(executor), compute(lease) {}

executor_actor::behavior_type executor_actor_state::make_behavior() {
  return {
      [this](const execute_step& message) { execute(message.batch); },
      [this](const compute_reached& message) {
        auto found = in_flight.find(message.step);
        if (found == in_flight.end()) return;
        auto step = std::move(found->second);
        in_flight.erase(found);
        if (message.failure.empty())
          compat::mail(self, step_result{message.step, std::move(step->sampled)}).send(scheduler);
        else
          fail(message.step, errc::model_failed, message.failure);
      },
  };
}

void executor_actor_state::execute(const step_batch& batch) {
  const auto step = batch.step;
  const auto flight = in_flight[step] = std::make_shared<step_in_flight>(step_in_flight{batch, {}});
  const auto enqueued = model->enqueue(flight->batch, *compute.stream, flight->sampled);
  // Recorded also after a failure: later copies wait for it.
  const auto recorded = compute.device->record_step(*compute.stream, step.value);
  compat::mail(self, step_enqueued{step}).send(scheduler);
  auto on_reached = [me = executor_actor{self}, step, flight](const std::optional<gpu::error>& failure) {
    compat::anon_mail(compute_reached{step, failure ? to_string(*failure) : std::string{}}).send(me);
  };
  auto status = !enqueued ? enqueued : !recorded ? recorded : compute.stream->call_when_reached(std::move(on_reached));
  if (status) return;
  in_flight.erase(step);
  fail(step, errc::device_failed, to_string(status.error()));
}

void executor_actor_state::fail(step_id step, errc code, std::string message) {
  compat::mail(self, step_failed{step, code, std::move(message)}).send(scheduler);
}

}  // namespace sluice::inline v0
