// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// Resets the device's prefix cache and, where asked, every tier, between two steps. Each named cache is reset whole
/// or left untouched; all are tried. The device refuses while loads are in flight, and while requests run unless the
/// command preempts them; if it refuses, nobody is preempted. Tiers never refuse: slots in use drain, and transfers
/// in flight become stale.
reset_report reset_caches(scheduler_state& state, const reset_prefix_cache& command);

}  // namespace sluice::inline v0
