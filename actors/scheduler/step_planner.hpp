// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>

namespace sluice::inline v0 {

/// Decides what step `step` does. Pure: reads `state`, changes nothing. Tokens that steps in flight will sample count
/// as there.
///
/// Running requests come first, then those whose loads have settled, each in the order of the policy; a request that
/// finds no blocks preempts the last of them until it fits or is itself the last, and then takes what there is. Then
/// waiting requests are admitted in order while all their known tokens fit beside what the active ones still need.
/// The scan ends at the first that does not fit, unless nothing runs. One that did not fit is looked up again only when
/// more blocks have become free than were not enough, or the content that it missed first has appeared; one that waits
/// for an event is not met at all.
step_plan plan_step(const scheduler_state& state, step_id step);

}  // namespace sluice::inline v0
