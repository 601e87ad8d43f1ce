// SPDX-License-Identifier: Apache-2.0
//
// One direction of the imitated link between host and device. Internal to gpu/host.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

namespace sluice::inline v0::gpu::host {

using clock = std::chrono::steady_clock;

/// When the bytes of one batch may have arrived.
struct timetable {
  clock::time_point first_byte;
  double ns_per_byte = 0;

  clock::time_point arrival(std::size_t num_bytes) const;
};

/// Batches of all streams use the link one after the other, in the order in which they begin. Any thread.
class link {
 public:
  /// `gib_per_s` <= 0: no limit.
  link(double gib_per_s, std::chrono::nanoseconds latency);

  timetable reserve(std::size_t num_bytes);

 private:
  const double ns_per_byte_;
  const std::chrono::nanoseconds latency_;
  std::mutex mutex_;
  clock::time_point free_at_;
};

}  // namespace sluice::inline v0::gpu::host
