// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>

namespace sluice::inline v0 {

/// Carries a plan into the state it was made from: preempts (victims' stores go to `victim_stores`), admits, takes
/// blocks, pins slots, records loads.
/// `plan.failures` are the caller's to end. Returns the jobs of the loads created.
std::vector<transfer_job> apply_plan(scheduler_state& state, const step_plan& plan);

/// Why the plan's waiting requests stay where they are: parks those that an event will wake. Part of apply_plan; for a
/// plan that needs no step it is all there is to apply.
void note_waits(scheduler_state& state, const step_plan& plan);

/// Counts the plan's admissions, their prefix queries and hits, once per request. At dispatch: a withdrawn admission
/// used nothing of what it found.
void count_admissions(scheduler_state& state, const step_plan& plan);

/// Undoes the admissions, allocations, loads and pins of an applied plan that will not be dispatched. Preemptions,
/// attempts, evictions and failures stand.
void withdraw_plan(scheduler_state& state, const step_plan& plan);

/// What the preemption handler must know of the applied plan: every unsettled transfer of a preempted request that
/// no dispatched plan has reported, one entry per store and per present waiter of a load.
std::vector<pending_transfer> pending_of_preempted(const scheduler_state& state);

/// The batch that the executor computes for an applied plan. Notes for each request which of the step's samples is its
/// own, which the next batch may need.
step_batch make_batch(scheduler_state& state, const step_plan& plan);

}  // namespace sluice::inline v0
