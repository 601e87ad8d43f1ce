// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// Which caches to reset, and on whose behalf requests are preempted.
struct reset_scope {
  bool device = true;
  bool tiers = false;
  bool preempts_running = false;
  preemption_cause cause = preemption_cause::reset;
};

/// Resets the named caches, between two steps. Each is reset whole or left untouched; all are tried. The device
/// refuses while loads are in flight, and while requests run unless the command preempts them; if it refuses, nobody is
/// preempted. When the tiers are kept, what is preempted is stored first. A tier that refuses or cannot be reset keeps
/// what it has; of one that is reset, slots in use drain and transfers in flight become stale.
reset_report reset_caches(scheduler_state& state, const reset_scope& scope);

/// The device's answer if it were reset now.
cache_reset_report probe_device_reset(const scheduler_state& state, bool preempts_running);

}  // namespace sluice::inline v0
