// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/step_board.hpp>

namespace sluice::inline v0::gpu::host {

status step_board::record(const stream& on, std::uint64_t step) {
  const std::scoped_lock lock(mutex_);
  return counters_.record(on, step);
}

status step_board::check_wait(std::uint64_t step) const {
  const std::scoped_lock lock(mutex_);
  return counters_.check_wait(step);
}

void step_board::reach(std::uint64_t step) {
  {
    const std::scoped_lock lock(mutex_);
    counters_.reach(step);
  }
  reached_.notify_all();
}

void step_board::wait(std::uint64_t step) {
  std::unique_lock lock(mutex_);
  reached_.wait(lock, [&] { return counters_.is_reached(step); });
}

void step_board::forget(const stream& ended) {
  const std::scoped_lock lock(mutex_);
  counters_.forget(ended);
}

}  // namespace sluice::inline v0::gpu::host
