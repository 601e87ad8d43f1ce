// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/link.hpp>

#include <algorithm>

namespace sluice::inline v0::gpu::host {

namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

clock::duration time_for(std::size_t num_bytes, double ns_per_byte) {
  const std::chrono::duration<double, std::nano> exact(static_cast<double>(num_bytes) * ns_per_byte);
  return std::chrono::duration_cast<clock::duration>(exact);
}

}  // namespace

clock::time_point timetable::arrival(std::size_t num_bytes) const {
  return first_byte + time_for(num_bytes, ns_per_byte);
}

link::link(double gib_per_s, std::chrono::nanoseconds latency)
    : ns_per_byte_(gib_per_s > 0 ? 1e9 / (gib_per_s * gib) : 0),
      latency_(std::max(latency, std::chrono::nanoseconds::zero())) {}

timetable link::reserve(std::size_t num_bytes) {
  const std::scoped_lock lock(mutex_);
  const auto begin = std::max(clock::now(), free_at_);
  free_at_ = begin + time_for(num_bytes, ns_per_byte_);
  return {begin + latency_, ns_per_byte_};
}

}  // namespace sluice::inline v0::gpu::host
