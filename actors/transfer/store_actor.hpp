// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <vector>

#include <sluice/actors/transfer/transfer_queue.hpp>
#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// The store actor: submits stores to its stream, reports their physical ends to the scheduler, and answers a flush
/// once the stores it names have settled.
struct store_actor_state {
  static constexpr const char* name = "store";

  store_actor_state(store_actor::pointer self, scheduler_actor scheduler, stream_lease lease, transfer_memory memory);
  store_actor::behavior_type make_behavior();

  /// A flush that waits for stores.
  struct waiting_flush {
    step_id step;
    std::set<transfer_id> unsettled;
    compat::response_promise<stores_flushed> promise;
  };

  caf::result<stores_flushed> flush(const flush_stores& message);
  void answer_flushes(const std::vector<transfer_outcome>& ended);

  store_actor::pointer self;
  scheduler_actor scheduler;
  transfer_queue queue;
  std::vector<waiting_flush> flushes;
};

}  // namespace sluice::inline v0
