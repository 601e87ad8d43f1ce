// SPDX-License-Identifier: Apache-2.0
//
// The answers to a boundary, and the withdrawal of its plan.
#include <algorithm>
#include <functional>
#include <utility>

#include <sluice/actors/rules.hpp>
#include <sluice/actors/scheduler/apply_plan.hpp>
#include <sluice/actors/scheduler/scheduler_core.hpp>
#include <sluice/actors/scheduler/settle_transfers.hpp>

namespace sluice::inline v0 {

void scheduler_core::cleared(const boundary_cleared& message) {
  if (!boundary_ || boundary_->plan.step != message.step)
    return report("boundary of step " + std::to_string(message.step.value) + " was cleared while it was not open");
  state_.totals.flushed_stores += message.num_flushed_stores;
  state_.totals.boundary_excluded_loads += message.num_excluded_loads;
  auto step = close_boundary();
  dispatch(std::move(step));
  run();
}

void scheduler_core::boundary_failed(step_id step, errc code, std::vector<transfer_id> ids) {
  if (!boundary_ || boundary_->plan.step != step)
    return report("boundary of step " + std::to_string(step.value) + " failed while it was not open");
  const auto concerned = preempted_waiters_of(ids);
  withdraw();
  if (code == errc::older_load_pending) {
    report("a preempted request waits on a load that was created before step " + std::to_string(step.value));
    for (auto id : concerned) fail_for_older_load(id);
    std::erase_if(ids, [this](transfer_id id) {
      const auto* record = state_.ledger.find(id);
      return record == nullptr || record->direction != transfer_direction::load;
    });
    give_up_unsettled(std::move(ids));
  } else if (code == errc::flush_timed_out) {
    give_up_unsettled(std::move(ids));
  }
  // Planning again at once would only find the actor lost again.
  if (code == errc::transfer_actor_lost)
    send_tokens();
  else
    run();
}

void scheduler_core::plan_again() { run(); }

void scheduler_core::transfer_actor_replaced(transfer_direction direction) {
  adopt_transfers adopted{state_.ledger.ids(direction), {state_.ledger.next_id().value - 1}};
  erase_settled(adopted.ids);
  switch (direction) {
    case transfer_direction::load:
      ++state_.totals.load_actor_restarts;
      held_loads_.clear();  // adopted with the others
      if (boundary_) {
        for (const auto& load : boundary_->loads) std::erase(adopted.ids, load.id);
        boundary_->are_loads_staged = !holds(rule::stage_again);
      }
      break;
    case transfer_direction::store: ++state_.totals.store_actor_restarts; break;
  }
  if (!holds(rule::adopt_transfers)) adopted.ids.clear();
  send(adoption{direction, std::move(adopted)});
  run();
}

scheduler_core::open_step scheduler_core::close_boundary() {
  auto step = std::move(*boundary_);
  boundary_.reset();
  state_.observer.step_part_took(step_part::boundary, step.since_opening.elapsed());
  return step;
}

scheduler_core::open_step scheduler_core::withdraw() {
  ++state_.totals.withdrawn_plans;
  auto step = close_boundary();
  if (!step.loads.empty()) send(unstage_loads{step.plan.step});
  withdraw_plan(state_, step.plan);
  return step;
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
  give_up_unsettled({stores.begin(), stores.end()});
  end(id, finish_reason::error, errc::older_load_pending, std::string(describe(errc::older_load_pending)));
}

/// Those whose settlement already waits among the inputs are not given up.
void scheduler_core::give_up_unsettled(std::vector<transfer_id> transfers) {
  erase_settled(transfers);
  give_up(state_, transfers);
}

void scheduler_core::erase_settled(std::vector<transfer_id>& transfers) const {
  for (const auto& message : inputs_)
    if (const auto* settled = std::get_if<transfers_settled>(&message))
      for (const auto& outcome : settled->outcomes) std::erase(transfers, outcome.id);
}

}  // namespace sluice::inline v0
