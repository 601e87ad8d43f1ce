// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/executor_actor.hpp>

#include <algorithm>
#include <utility>

#include <sluice/actors/rules.hpp>

namespace sluice::inline v0 {

executor_actor_state::executor_actor_state(executor_actor::pointer self_pointer, scheduler_actor scheduler_handle,
                                           model_executor* executor, stream_lease lease, gpu::memory_view pool_memory)
    : self(self_pointer), scheduler(std::move(scheduler_handle)), model(executor), compute(lease), pool(pool_memory) {}

executor_actor_state::~executor_actor_state() {
  if (kept.empty()) return;
  const auto left = std::make_shared<std::vector<record_ptr>>(std::move(kept));
  const auto handed_over = compute.stream->enqueue_function([left] {});
  if (!handed_over) new auto(left);  // A leak: the stream takes nothing any more, but may still run what it has.
}

executor_actor::behavior_type executor_actor_state::make_behavior() {
  return {
      [this](execute_step& message) { execute(message); },
      [this](const change_memory& message) -> caf::result<memory_changed> { return change(message); },
      [this](const compute_reached& message) { reached(message); },
  };
}

void executor_actor_state::execute(execute_step& message) {
  const auto step = message.batch.step;
  const auto record = std::make_shared<step_record>();
  record->batch = std::move(message.batch);
  record->previous = std::exchange(last_sampled, std::make_shared<std::vector<sampled_token>>());
  record->sampled = last_sampled;
  record->sampled->reserve(record->batch.entries.size());
  unreported.push_back(record);
  kept.push_back(record);

  const auto enqueued = enqueue(*record);
  // Recorded also after a failure: later copies wait for it.
  const auto recorded = compute.device->record_step(*compute.stream, step.value);
  compat::mail(self, step_enqueued{step}).send(scheduler);
  if (const auto& status = enqueued ? recorded : enqueued; !status)
    record->failed = failure{errc::device_failed, to_string(status.error())};

  const auto called = call_back(record);
  if (called || !enqueued) kept.pop_back();
  if (!called) end(*record, failure{errc::device_failed, to_string(called.error())});
}

gpu::status executor_actor_state::enqueue(step_record& record) {
  if (is_pool_released || are_weights_released)
    return tl::unexpected(gpu::error{"execute_step", 0, "memory that the step needs was given back", 0});
  return model->enqueue(record.batch, *record.previous, *compute.stream, *record.sampled);
}

gpu::status executor_actor_state::call_back(const record_ptr& record) {
  return compute.stream->call_when_reached(
      [me = executor_actor{self}, record](const std::optional<gpu::error>& failed) {
        compat::anon_mail(compute_reached{record->batch.step, failed ? to_string(*failed) : std::string{}}).send(me);
      });
}

void executor_actor_state::reached(const compute_reached& message) {
  std::erase_if(kept, [&](const record_ptr& record) { return record->batch.step <= message.step; });
  const auto found =
      std::ranges::find_if(unreported, [&](const record_ptr& record) { return record->batch.step == message.step; });
  if (found == unreported.end()) return;
  std::optional<failure> failed;
  if (!message.failure.empty()) failed = failure{errc::model_failed, message.failure};
  end(**found, std::move(failed));
}

void executor_actor_state::end(step_record& record, std::optional<failure> failed) {
  record.has_ended = true;
  if (!record.failed) record.failed = std::move(failed);
  if (!holds(rule::report_in_order)) {
    report(record);
    std::erase_if(unreported, [&](const record_ptr& other) { return other.get() == &record; });
    return;
  }
  for (; !unreported.empty() && unreported.front()->has_ended; unreported.pop_front()) report(*unreported.front());
}

void executor_actor_state::report(const step_record& record) {
  const auto step = record.batch.step;
  if (record.failed)
    compat::mail(self, step_failed{step, record.failed->code, record.failed->message}).send(scheduler);
  else
    compat::mail(self, step_result{step, *record.sampled}).send(scheduler);  // a copy: the next step may read them
}

memory_changed executor_actor_state::change(const change_memory& message) {
  if (message.is_release && !(unreported.empty() && kept.empty()))
    return {errc::device_failed, "memory cannot be given back: a step is on the compute stream"};
  memory_changed answer;
  if (message.kv_cache) answer = change_pool(message.is_release);
  if (message.weights && answer.code == errc::none) answer = change_weights(message.is_release);
  return answer;
}

memory_changed executor_actor_state::change_pool(bool is_release) {
  if (is_pool_released == is_release) return {};
  const auto changed = is_release ? compute.device->discard(pool) : compute.device->restore(pool);
  if (!changed) return {errc::device_failed, to_string(changed.error())};
  is_pool_released = is_release;
  return {};
}

memory_changed executor_actor_state::change_weights(bool is_release) {
  if (are_weights_released == is_release) return {};
  const auto changed = is_release ? model->release_weights() : model->restore_weights();
  if (!changed) return {errc::model_failed, to_string(changed.error())};
  are_weights_released = is_release;
  return {};
}

}  // namespace sluice::inline v0
