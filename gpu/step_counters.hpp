// SPDX-License-Identifier: Apache-2.0
//
// The rules of step events without any waiting: two counters that only rise. For backends.
#pragma once

#include <cstdint>

#include <sluice/gpu/device.hpp>

namespace sluice::inline v0::gpu {

/// Which step was recorded last, on which stream, and which was reached last. Not synchronised: the backend locks.
///
/// Invariants: 1. reached <= recorded. 2. A recorded step that is not reached is queued on the recording stream.
class step_counters {
 public:
  /// Checks and notes that `step` is about to be enqueued on `on`. EINVAL if the step does not rise, or if
  /// another living stream records.
  status record(const stream& on, std::uint64_t step);

  /// EINVAL if no step >= `step` was recorded.
  status check_wait(std::uint64_t step) const;

  /// The recording stream has come to `step`.
  void reach(std::uint64_t step);

  bool is_reached(std::uint64_t step) const { return step <= reached_; }

  /// Null if no living stream has recorded.
  const stream* recorder() const { return recorder_; }

  /// `ended` has run all it held and is about to die. Another stream may record from now on.
  void forget(const stream& ended);

 private:
  std::uint64_t recorded_ = 0;
  std::uint64_t reached_ = 0;
  const stream* recorder_ = nullptr;
};

}  // namespace sluice::inline v0::gpu
