// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/scheduler_core.hpp>

#include <algorithm>
#include <functional>

#include <sluice/actors/scheduler/apply_plan.hpp>
#include <sluice/actors/scheduler/reset_caches.hpp>
#include <sluice/actors/scheduler/settle_transfers.hpp>
#include <sluice/actors/scheduler/step_planner.hpp>

namespace sluice::inline v0 {

scheduler_core::scheduler_core(scheduler_config config, std::unique_ptr<tier_index> tier)
    : state_(std::move(config), std::move(tier)) {}

// -- inputs -------------------------------------------------------------------------------------------------------

void scheduler_core::receive(input message) {
  inputs_.push_back(std::move(message));
  if (!open_) run_steps();
}

void scheduler_core::apply_inputs() {
  while (!inputs_.empty()) {
    auto message = std::move(inputs_.front());
    inputs_.pop_front();
    std::visit([this](auto& value) { apply(std::move(value)); }, message);
  }
}

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

void scheduler_core::apply(const reset_input& message) {
  send(reset_answer{message.ticket, reset_caches(state_, message.command)});
}

void scheduler_core::apply(const transfers_settled& message) {
  if (const auto num_unknown = settle_transfers(state_, message); num_unknown > 0)
    report(std::to_string(num_unknown) + " transfers settled that were not in flight");
}

void scheduler_core::end(request_id id, finish_reason reason, errc code, std::string message) {
  if (state_.requests.find(id) != nullptr)
    finished_.push_back(end_request(state_, id, reason, code, std::move(message)));
}

// -- steps --------------------------------------------------------------------------------------------------------

void scheduler_core::run_steps() {
  while (!open_) {
    apply_inputs();
    auto plan = plan_step(state_, {state_.last_step.value + 1});
    const bool is_needed = !plan.is_empty() || !state_.unreported_preemptions.empty();
    if (!is_needed) {
      for (const auto& wait : plan.waits) state_.requests.find(wait.request)->reason = wait.reason;
      break;
    }
    auto loads = apply_plan(state_, plan);
    for (const auto& failure : plan.failures)
      end(failure.request, finish_reason::error, failure.code, std::string(describe(failure.code)));
    const bool needs_boundary = !state_.unreported_preemptions.empty() || !plan.reused_stores.empty();
    open_.emplace(open_step{std::move(plan), std::move(loads)});
    if (needs_boundary)
      open_boundary();
    else
      dispatch(false);
  }
  send_tokens();
}

void scheduler_core::open_boundary() {
  ++state_.totals.boundaries;
  const auto step = open_->plan.step;
  if (!open_->loads.empty()) send(stage_loads{step, open_->loads});
  send(step_boundary{step, pending_of_preempted(state_), open_->plan.reused_stores});
}

void scheduler_core::dispatch(bool are_loads_staged) {
  open_->phase = open_phase::executing;
  state_.unreported_preemptions.clear();
  ++state_.totals.steps;
  const auto& plan = open_->plan;
  count_queries(state_, plan);
  const auto after_step = state_.last_sent_step;
  if (!plan.entries.empty()) {
    state_.last_sent_step = plan.step;
    send(execute_step{make_batch(state_, plan)});
  }
  if (!open_->loads.empty())
    send_loads({plan.step, are_loads_staged ? std::vector<transfer_job>{} : std::move(open_->loads), after_step});
  if (plan.entries.empty()) open_.reset();  // nothing to compute: committed
}

void scheduler_core::send_loads(submit_loads message) {
  if (message.after_step <= last_enqueued_step_)
    send(std::move(message));
  else
    held_loads_.push_back(std::move(message));
}

void scheduler_core::enqueued(step_enqueued message) {
  last_enqueued_step_ = std::max(last_enqueued_step_, message.step);
  auto held = std::exchange(held_loads_, {});
  for (auto& loads : held) send_loads(std::move(loads));
}

void scheduler_core::result(const step_result& message) {
  if (!open_ || open_->phase != open_phase::executing || open_->plan.step != message.step)
    return report("a result of step " + std::to_string(message.step.value) + " came while it was not executing");
  const auto& entries = open_->plan.entries;
  const auto num_sampling = std::count_if(entries.begin(), entries.end(), [](auto& entry) { return entry.samples; });
  if (static_cast<std::size_t>(num_sampling) != message.sampled.size())
    return failed({message.step, errc::model_failed,
                   "the model sampled " + std::to_string(message.sampled.size()) + " tokens, " +
                       std::to_string(num_sampling) + " were asked for"});
  const auto plan = std::move(open_->plan);
  open_.reset();
  commit(commit_step(state_, plan, message));
  run_steps();
}

void scheduler_core::failed(const step_failed& message) {
  if (!open_ || open_->phase != open_phase::executing || open_->plan.step != message.step)
    return report("a failure of step " + std::to_string(message.step.value) + " came while it was not executing");
  const auto plan = std::move(open_->plan);
  open_.reset();
  for (const auto& entry : plan.entries) end(entry.request, finish_reason::error, message.code, message.message);
  run_steps();
}

void scheduler_core::commit(const commit_effects& effects) {
  if (!effects.stores.empty()) {
    const auto step = state_.last_sent_step;
    send(submit_stores{step, effects.stores, step});
  }
  finished_.insert(finished_.end(), effects.finished.begin(), effects.finished.end());
  with_new_tokens_.insert(with_new_tokens_.end(), effects.with_new_tokens.begin(), effects.with_new_tokens.end());
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

// -- boundary answers ---------------------------------------------------------------------------------------------

void scheduler_core::cleared(const boundary_cleared& message) {
  if (!is_boundary_open() || open_->plan.step != message.step)
    return report("boundary of step " + std::to_string(message.step.value) + " was cleared while it was not open");
  state_.totals.flushed_stores += message.num_flushed_stores;
  state_.totals.boundary_excluded_loads += message.num_excluded_loads;
  dispatch(!open_->loads.empty());
  if (!open_) run_steps();
}

void scheduler_core::boundary_failed(step_id step, errc code, std::vector<transfer_id> ids) {
  if (!is_boundary_open() || open_->plan.step != step)
    return report("boundary of step " + std::to_string(step.value) + " failed while it was not open");
  const auto concerned = preempted_waiters_of(ids);
  withdraw();
  if (code == errc::older_load_pending) {
    report("a preempted request waits on a load that was created before step " + std::to_string(step.value));
    for (auto id : ids)
      if (const auto* load = state_.ledger.find(id); load && load->direction == transfer_direction::load)
        state_.ledger.give_up(id);
    for (auto id : concerned) fail_for_older_load(id);
  } else if (code == errc::flush_timed_out) {
    give_up_unsettled(std::move(ids));
  }
  // Planning again at once would only find the actor lost again.
  if (code == errc::transfer_actor_lost)
    send_tokens();
  else
    run_steps();
}

void scheduler_core::plan_again() {
  if (!open_) run_steps();
}

void scheduler_core::withdraw() {
  ++state_.totals.withdrawn_plans;
  if (!open_->loads.empty()) send(unstage_loads{open_->plan.step});
  withdraw_plan(state_, open_->plan);
  open_.reset();
}

/// The preempted requests that wait on one of `loads`, or all its waiters if none of them was preempted. Never nobody:
/// if the ids say nothing, every preempted request is concerned, so that the same boundary does not fail for ever.
std::vector<request_id> scheduler_core::preempted_waiters_of(const std::vector<transfer_id>& loads) const {
  const auto& preempted = state_.unreported_preemptions;
  auto is_preempted = [&](request_id id) { return std::find(preempted.begin(), preempted.end(), id) != preempted.end(); };
  std::vector<request_id> all;
  for (auto id : loads)
    if (const auto* record = state_.ledger.find(id)) all.insert(all.end(), record->waiters.begin(), record->waiters.end());
  if (all.empty()) return preempted;
  if (std::any_of(all.begin(), all.end(), is_preempted)) std::erase_if(all, std::not_fn(is_preempted));
  return all;
}

/// The request's memory comes back when its transfers settle.
void scheduler_core::fail_for_older_load(request_id id) {
  const auto stores = state_.ledger.stores_of(id);
  give_up_stores(state_, std::vector<transfer_id>(stores.begin(), stores.end()));
  end(id, finish_reason::error, errc::older_load_pending, std::string(describe(errc::older_load_pending)));
}

/// Stores whose settlement already waits among the inputs are not given up.
void scheduler_core::give_up_unsettled(std::vector<transfer_id> stores) {
  for (const auto& message : inputs_)
    if (const auto* settled = std::get_if<transfers_settled>(&message))
      for (const auto& outcome : settled->outcomes) std::erase(stores, outcome.id);
  give_up_stores(state_, stores);
}

void scheduler_core::report(std::string what) {
  ++state_.totals.invariant_violations;
  send(invariant_violation{state_.last_step, std::move(what)});
}

// -- views --------------------------------------------------------------------------------------------------------

std::vector<outgoing> scheduler_core::take_outgoing() { return std::exchange(outgoing_, {}); }

bool scheduler_core::is_idle() const {
  return !open_ && inputs_.empty() && state_.requests.size() == 0 && state_.ledger.records().empty();
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
          is_idle()};
}

engine_snapshot scheduler_core::snapshot() const {
  auto snapshot = make_snapshot(state_);
  snapshot.is_idle = is_idle();
  snapshot.is_boundary_open = is_boundary_open();
  return snapshot;
}

}  // namespace sluice::inline v0
