// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/transfer/store_actor.hpp>

#include <utility>

namespace sluice::inline v0 {

store_actor_state::store_actor_state(store_actor::pointer self_pointer, scheduler_actor scheduler_handle,
                                     stream_lease lease, transfer_memory memory)
    : self(self_pointer), scheduler(std::move(scheduler_handle)),
      queue(lease, std::move(memory), transfer_direction::store,
            [me = store_actor{self_pointer}] { compat::anon_mail(copies_ended{}).send(me); }) {}

store_actor::behavior_type store_actor_state::make_behavior() {
  return {
      [this](const submit_stores& message) { queue.submit(message.stores, message.after_step); },
      [this](const adopt_transfers& message) { queue.adopt(message.ids, message.highest); },
      [this](const flush_stores& message) { return flush(message); },
      [this](const copies_ended&) {
        const auto ended = queue.take_ended();
        if (ended.empty()) return;
        compat::mail(self, transfers_settled{transfer_direction::store, ended}).send(scheduler);
        answer_flushes(ended);
      },
  };
}

caf::result<stores_flushed> store_actor_state::flush(const flush_stores& message) {
  waiting_flush waiting{message.step, {}, {}};
  for (auto id : message.ids)
    if (queue.holds(id) || id > queue.highest_submitted()) waiting.unsettled.insert(id);
  if (waiting.unsettled.empty()) return stores_flushed{message.step};
  waiting.promise = compat::make_response_promise<stores_flushed>(self);
  flushes.push_back(waiting);
  return waiting.promise;
}

void store_actor_state::answer_flushes(const std::vector<transfer_outcome>& ended) {
  for (auto& waiting : flushes)
    for (const auto& outcome : ended) waiting.unsettled.erase(outcome.id);
  std::erase_if(flushes, [](waiting_flush& waiting) {
    if (!waiting.unsettled.empty()) return false;
    compat::deliver(waiting.promise, stores_flushed{waiting.step});
    return true;
  });
}

}  // namespace sluice::inline v0
