// SPDX-License-Identifier: Apache-2.0
//
// Step events of the host device: counters that streams can wait on. Internal to gpu/host.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <sluice/gpu/step_counters.hpp>

namespace sluice::inline v0::gpu::host {

/// `step_counters` behind a lock. Any thread.
class step_board {
 public:
  status record(const stream& on, std::uint64_t step);
  status check_wait(std::uint64_t step) const;
  void reach(std::uint64_t step);
  /// Blocks until a step >= `step` is reached.
  void wait(std::uint64_t step);
  void forget(const stream& ended);

 private:
  mutable std::mutex mutex_;
  std::condition_variable reached_;
  step_counters counters_;
};

}  // namespace sluice::inline v0::gpu::host
