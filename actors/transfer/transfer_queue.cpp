// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/transfer/transfer_queue.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

namespace sluice::inline v0 {

/// Written by the stream's thread, emptied by the actor. The first entry wakes the actor, later ones ride along.
struct transfer_queue::ended_list {
  std::mutex mutex;
  std::vector<transfer_outcome> outcomes;
  std::function<void()> wake;

  void add(transfer_outcome outcome) {
    bool is_first = false;
    {
      std::lock_guard lock(mutex);
      is_first = outcomes.empty();
      outcomes.push_back(outcome);
    }
    if (is_first) wake();
  }
};

transfer_queue::transfer_queue(stream_lease lease, transfer_memory memory, transfer_direction direction,
                               std::function<void()> wake)
    : lease_(lease), memory_(std::move(memory)), direction_(direction), ended_(std::make_shared<ended_list>()) {
  ended_->wake = std::move(wake);
}

void transfer_queue::submit(const std::vector<transfer_job>& jobs, step_id after_step) {
  if (jobs.empty()) return;
  const auto waits = lease_.device->wait_step(*lease_.stream, after_step.value);
  for (const auto& job : jobs) enqueue(job, waits);
}

void transfer_queue::adopt(const std::vector<transfer_id>& ids, transfer_id highest) {
  highest_ = std::max(highest_, highest);
  if (ids.empty()) return;
  submitted_.insert(ids.begin(), ids.end());
  static_cast<void>(lease_.stream->call_when_reached([list = ended_, ids](const std::optional<gpu::error>&) {
    for (auto id : ids) list->add({id, transfer_result::failed, 0, std::chrono::nanoseconds{0}, true});
  }));
}

void transfer_queue::enqueue(const transfer_job& job, const gpu::status& waits) {
  submitted_.insert(job.id);
  highest_ = std::max(highest_, job.id);
  auto physical = make_physical_copies(memory_, job, direction_);
  const auto start = std::chrono::steady_clock::now();
  auto on_end = [list = ended_, id = job.id, start, counts = std::move(physical.num_per_block_copy)](
                    const gpu::copy_outcome& outcome) {
    const auto num_good = num_good_block_copies(counts, outcome.num_good_copies);
    list->add({id, outcome.failure ? transfer_result::failed : transfer_result::ok, num_good,
               std::chrono::steady_clock::now() - start, false});
  };
  if (!waits || !lease_.stream->enqueue_copies(std::move(physical.batch), std::move(on_end)))
    ended_->add({job.id, transfer_result::failed, 0, std::chrono::nanoseconds{0}, true});
}

std::vector<transfer_outcome> transfer_queue::take_ended() {
  std::vector<transfer_outcome> ended;
  {
    std::lock_guard lock(ended_->mutex);
    ended.swap(ended_->outcomes);
  }
  for (const auto& outcome : ended) submitted_.erase(outcome.id);
  return ended;
}

}  // namespace sluice::inline v0
