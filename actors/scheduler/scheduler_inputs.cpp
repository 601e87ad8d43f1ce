// SPDX-License-Identifier: Apache-2.0
//
// What arrives between steps: commands, settlements, timers.
#include <algorithm>
#include <utility>

#include <sluice/actors/scheduler/reset_caches.hpp>
#include <sluice/actors/scheduler/scheduler_core.hpp>
#include <sluice/actors/scheduler/settle_transfers.hpp>

namespace sluice::inline v0 {

void scheduler_core::receive(input message) {
  inputs_.push_back(std::move(message));
  run();
}

/// In arrival order; then what waited for them.
void scheduler_core::apply_inputs() {
  for (; !inputs_.empty(); inputs_.pop_front())
    std::visit([this](auto& value) { apply(std::move(value)); }, inputs_.front());
  run_waiting_resets();
  control_.advance(!executing_.empty());
  for (auto& answer : control_.take_answers()) send(control_answer{answer.ticket, std::move(answer.report)});
  if (auto change = control_.take_memory_change()) send(*change);
  send_victim_stores();
}

// -- requests -----------------------------------------------------------------------------------------------------

void scheduler_core::apply(submit_request message) {
  auto& request = state_.requests.add(std::move(message.params), state_.config.num_groups());
  state_.totals.prompt_tokens += request.num_prompt_tokens();
  extend_keys(state_, request);
}

void scheduler_core::apply(const abort_request& message) { end(message.request, finish_reason::abort); }

void scheduler_core::apply(const finish_request& message) {
  const auto* request = state_.requests.find(message.request);
  if (request == nullptr) return;
  auto finished = end_request(state_, message.request, message.reason);
  finished.usage.num_output_tokens = std::min(finished.usage.num_output_tokens, message.num_output_tokens);
  finished.tokens.clear();
  finished_.push_back(std::move(finished));
}

void scheduler_core::end(request_id id, finish_reason reason, errc code, std::string message) {
  if (state_.requests.find(id) != nullptr)
    finished_.push_back(end_request(state_, id, reason, code, std::move(message)));
}

// -- control ------------------------------------------------------------------------------------------------------

void scheduler_core::apply(const ticketed<reset_prefix_cache>& message) {
  const waiting_reset reset{message.command, message.ticket};
  const auto device = probe_device_reset(state_, message.command.reset_running_requests);
  const bool waits = message.command.reset_device && message.command.wait.count() > 0 && !device.held_by_loads.empty() &&
                     device.held_by_running_requests == 0;
  if (!waits) return run_reset(reset);
  state_.limits.creates_loads = false;
  send(timer<control_expired>{{message.ticket}, message.command.wait});
  waiting_resets_.push_back(reset);
}

void scheduler_core::run_reset(const waiting_reset& reset) {
  const auto& command = reset.command;
  send(reset_answer{reset.ticket, reset_caches(state_, {command.reset_device, command.reset_external,
                                                        command.reset_running_requests, preemption_cause::reset})});
}

void scheduler_core::run_waiting_resets() {
  if (waiting_resets_.empty() || state_.ledger.num_loads() > 0) return;
  for (const auto& reset : std::exchange(waiting_resets_, {})) run_reset(reset);
  state_.limits.creates_loads = true;
}

void scheduler_core::apply(const ticketed<pause_engine>& message) {
  if (!control_.pause(message.command, message.ticket)) return;
  send(timer<control_expired>{{message.ticket}, message.command.timeout});
  if (message.command.mode == pause_mode::abort) end_all();
}

void scheduler_core::apply(const ticketed<sleep_engine>& message) {
  if (!control_.sleep(message.command, message.ticket)) return;
  send(timer<control_expired>{{message.ticket}, message.command.timeout});
  if (message.command.mode == pause_mode::abort) end_all();
}

void scheduler_core::end_all() {
  std::vector<request_id> ids;
  for (const auto& [id, request] : state_.requests.all()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (auto id : ids) end(id, finish_reason::abort);
}

void scheduler_core::apply(const ticketed<resume_engine>& message) { control_.resume(message.ticket); }
void scheduler_core::apply(const ticketed<wake_engine>& message) { control_.wake(message.command, message.ticket); }
void scheduler_core::apply(const memory_changed& message) { control_.memory_has_changed(message); }

void scheduler_core::apply(const control_expired& message) {
  if (control_.expire(message.ticket)) return;
  const auto found = std::find_if(waiting_resets_.begin(), waiting_resets_.end(),
                                  [&](const auto& reset) { return reset.ticket == message.ticket; });
  if (found == waiting_resets_.end()) return;
  run_reset(*found);  // refused, and says by which loads
  waiting_resets_.erase(found);
  state_.limits.creates_loads = waiting_resets_.empty();
}

// -- transfers and lookups ----------------------------------------------------------------------------------------

void scheduler_core::apply(const transfers_settled& message) {
  if (const auto num_unknown = settle_transfers(state_, message); num_unknown > 0)
    report(std::to_string(num_unknown) + " transfers settled that were not in flight");
}

void scheduler_core::apply(const check_transfers&) {
  watch_.is_armed = false;
  auto& newest = watch_.newest_at_check;
  newest.push_back(transfer_id{state_.ledger.next_id().value - 1});
  if (newest.size() > transfer_watch::checks_per_timeout) {
    std::vector<transfer_id> overdue;
    for (const auto& [id, record] : state_.ledger.records())
      if (id <= newest.front()) overdue.push_back(id);
    std::sort(overdue.begin(), overdue.end());
    newest.pop_front();
    give_up(state_, overdue);
  }
  if (state_.ledger.records().empty())
    newest.clear();
  else
    watch_transfers();
}

void scheduler_core::apply(const lookups_answered&) { wake_lookup_waiters(state_); }

void scheduler_core::apply(const wait_expired& message) {
  auto* request = state_.requests.find(message.request);
  if (request == nullptr || request->attempt != message.attempt) return;
  request->has_waited_enough = true;
  const bool waits = request->reason == waiting_reason::chunk_pending || request->reason == waiting_reason::lookup_pending;
  if (waits) state_.requests.wake(*request);
}

}  // namespace sluice::inline v0
