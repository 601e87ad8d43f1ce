// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include <sluice/actors/transfer/transfer_queue.hpp>
#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// The load actor: loads are staged while their step's boundary is open, submitted at dispatch, and reported to the
/// scheduler when they have physically ended.
struct load_actor_state {
  static constexpr const char* name = "load";

  load_actor_state(load_actor::pointer self, scheduler_actor scheduler, stream_lease lease, transfer_memory memory);
  load_actor::behavior_type make_behavior();

  load_actor::pointer self;
  scheduler_actor scheduler;
  transfer_queue queue;
  /// By step: one that was dispatched may wait for the enqueueing of an earlier one while the next boundary is open.
  std::map<step_id, std::vector<transfer_job>> staged;
};

}  // namespace sluice::inline v0
