// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>

namespace sluice::inline v0 {

/// Decides what step `step` does. Pure: reads `state`, changes nothing.
///
/// Running requests come first, then those whose loads have settled, each in arrival order; a request that finds no
/// blocks preempts the youngest of them until it fits or is itself the youngest, and then takes what there is. Then
/// waiting requests are admitted in order while all their known tokens fit beside what the active ones still need.
/// The scan ends at the first that does not fit, unless nothing runs.
step_plan plan_step(const scheduler_state& state, step_id step);

}  // namespace sluice::inline v0
