// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/scheduler_core.hpp>

#include <algorithm>
#include <utility>

#include <sluice/actors/rules.hpp>
#include <sluice/actors/scheduler/apply_plan.hpp>
#include <sluice/actors/scheduler/step_planner.hpp>

namespace sluice::inline v0 {

scheduler_core::scheduler_core(scheduler_config config, std::unique_ptr<tier_index> tier, engine_observer& observer)
    : state_(std::move(config), std::move(tier), observer) {}

// -- steps --------------------------------------------------------------------------------------------------------

void scheduler_core::run() {
  const std::size_t depth = state_.config.async_scheduling ? 2 : 1;
  while (!boundary_) {
    commit_results();
    if (executing_.size() >= depth) break;
    stopwatch time;
    apply_inputs();
    apply_time_ += time.lap();
    if (!open()) break;
  }
  send_tokens();
}

/// Plans the next step and opens its boundary or dispatches it. False when there is nothing to do.
bool scheduler_core::open() {
  stopwatch time;
  auto plan = plan_step(state_, {state_.last_step.value + 1});
  const auto plan_time = time.lap();
  start_wait_timers(plan);
  const bool has_news = !state_.unreported_preemptions.empty() && state_.limits.computes;
  if (plan.is_empty() && !has_news) {
    note_waits(state_, plan);
    apply_time_ = {};  // of no step
    return false;
  }
  auto loads = apply_plan(state_, plan);
  send_victim_stores();
  for (const auto& failure : plan.failures)
    end(failure.request, finish_reason::error, failure.code, std::string(describe(failure.code)));
  state_.observer.step_part_took(step_part::plan, plan_time);
  state_.observer.step_part_took(step_part::apply, std::exchange(apply_time_, {}) + time.lap());
  const bool needs_boundary = !state_.unreported_preemptions.empty() || !plan.reused_stores.empty();
  open_step step{std::move(plan), std::move(loads)};
  if (needs_boundary)
    open_boundary(std::move(step));
  else
    dispatch(std::move(step));
  return true;
}

void scheduler_core::open_boundary(open_step step) {
  ++state_.totals.boundaries;
  if (!step.loads.empty()) send(stage_loads{step.plan.step, step.loads});
  step.are_loads_staged = true;
  step.since_opening.lap();
  send(step_boundary{step.plan.step, pending_of_preempted(state_), step.plan.reused_stores});
  boundary_ = std::move(step);
}

void scheduler_core::dispatch(open_step step) {
  state_.unreported_preemptions.clear();
  ++state_.totals.steps;
  auto& plan = step.plan;
  count_admissions(state_, plan);
  const auto after_step = holds(rule::order_loads_after_steps) ? state_.last_sent_step : step_id{};
  if (!plan.entries.empty()) {
    state_.last_sent_step = plan.step;
    send(execute_step{make_batch(state_, plan)});
  }
  if (!step.loads.empty()) {
    if (step.are_loads_staged) step.loads.clear();
    send_loads({plan.step, std::move(step.loads), after_step});
    watch_transfers();
  }
  if (plan.entries.empty()) return;  // nothing to compute: committed
  executing_.push_back({std::move(plan)});
  state_.num_steps_in_flight = executing_.size();
}

void scheduler_core::send_loads(submit_loads message) {
  if (message.after_step > last_enqueued_step_ && holds(rule::hold_unordered_loads))
    held_loads_.push_back(std::move(message));
  else
    send(std::move(message));
}

void scheduler_core::send_stores(step_id step, std::vector<transfer_job> stores, step_id after_step) {
  if (stores.empty()) return;
  send(submit_stores{step, std::move(stores), after_step});
  watch_transfers();
}

void scheduler_core::watch_transfers() {
  if (!std::exchange(watch_.is_armed, true))
    send(timer<check_transfers>{{}, state_.config.transfer_timeout / transfer_watch::checks_per_timeout});
}

/// They read what was committed.
void scheduler_core::send_victim_stores() {
  send_stores(state_.last_step, std::exchange(state_.victim_stores, {}), state_.last_committed_step);
}

void scheduler_core::start_wait_timers(const step_plan& plan) {
  for (const auto& wait : plan.waits) {
    if (wait.reason != waiting_reason::chunk_pending && wait.reason != waiting_reason::lookup_pending) continue;
    auto& request = *state_.requests.find(wait.request);
    if (std::exchange(request.is_timed, true)) continue;
    send(timer<wait_expired>{{wait.request, request.attempt}, state_.config.lookup_timeout});
  }
}

// -- results ------------------------------------------------------------------------------------------------------

void scheduler_core::enqueued(step_enqueued message) {
  last_enqueued_step_ = std::max(last_enqueued_step_, message.step);
  for (auto& loads : std::exchange(held_loads_, {})) send_loads(std::move(loads));
}

void scheduler_core::result(step_result message) { keep_result(std::move(message)); }
void scheduler_core::failed(step_failed message) { keep_result(std::move(message)); }

template <class Message>
void scheduler_core::keep_result(Message message) {
  for (const auto& step : executing_)
    if (step.plan.step == message.step) state_.observer.step_part_took(step_part::execute, step.since_dispatch.elapsed());
  results_.emplace_back(std::move(message));
  run();
}

void scheduler_core::commit_results() {
  for (; !results_.empty(); results_.pop_front())
    std::visit([this](const auto& message) { commit(message); }, results_.front());
}

/// Takes out the oldest step in flight, which `step` must be.
std::optional<step_plan> scheduler_core::take_executing(step_id step) {
  if (executing_.empty() || executing_.front().plan.step != step) {
    report("a result of step " + std::to_string(step.value) + " came while it was not the oldest in flight");
    return std::nullopt;
  }
  auto plan = std::move(executing_.front().plan);
  executing_.pop_front();
  state_.num_steps_in_flight = executing_.size();
  state_.last_committed_step = step;
  return plan;
}

void scheduler_core::commit(const step_result& message) {
  if (!executing_.empty() && executing_.front().plan.step == message.step)
    if (auto fault = find_fault(state_, executing_.front().plan, message); !fault.empty())
      return commit(step_failed{message.step, errc::model_failed, std::move(fault)});
  const auto plan = take_executing(message.step);
  if (!plan) return;
  const stopwatch time;
  auto effects = commit_step(state_, *plan, message);
  send_stores(message.step, std::move(effects.stores), message.step);
  std::move(effects.finished.begin(), effects.finished.end(), std::back_inserter(finished_));
  with_new_tokens_.insert(with_new_tokens_.end(), effects.with_new_tokens.begin(), effects.with_new_tokens.end());
  state_.observer.step_part_took(step_part::commit, time.elapsed());
}

void scheduler_core::commit(const step_failed& message) {
  const auto plan = take_executing(message.step);
  if (!plan) return;
  for (const auto& entry : plan->entries)
    if (const auto* request = state_.requests.find(entry.request); request && request->attempt == entry.attempt)
      end(entry.request, finish_reason::error, message.code, message.message);
}

/// After the next dispatch, or when none follows or a boundary opens: clients are not on the way to the next step.
void scheduler_core::send_tokens() {
  for (auto id : with_new_tokens_)
    if (auto* request = state_.requests.find(id); request != nullptr && !request->unsent.empty())
      send(request_tokens{id, std::exchange(request->unsent, {})});
  for (auto& finished : finished_) send(std::move(finished));
  with_new_tokens_.clear();
  finished_.clear();
}

void scheduler_core::report(std::string what) {
  ++state_.totals.invariant_violations;
  send(invariant_violation{state_.last_step, std::move(what)});
}

// -- views --------------------------------------------------------------------------------------------------------

std::vector<outgoing> scheduler_core::take_outgoing() { return std::exchange(outgoing_, {}); }

bool scheduler_core::is_idle() const {
  return !boundary_ && executing_.empty() && inputs_.empty() && state_.requests.size() == 0 &&
         state_.ledger.records().empty();
}

engine_numbers scheduler_core::numbers() const {
  const auto& requests = state_.requests;
  const auto& ledger = state_.ledger;
  return {state_.totals,
          state_.pool.counts(),
          state_.tier ? state_.tier->counts() : slot_counts{},
          requests.num_waiting(),
          requests.num_loading(),
          requests.num_active() - requests.num_loading(),
          ledger.num_loads(),
          ledger.num_stores(),
          is_idle(),
          static_cast<std::uint64_t>(control_.state())};
}

engine_snapshot scheduler_core::snapshot() const {
  auto snapshot = make_snapshot(state_);
  snapshot.is_idle = is_idle();
  snapshot.is_boundary_open = is_boundary_open();
  snapshot.control = control_.state();
  return snapshot;
}

}  // namespace sluice::inline v0
