// SPDX-License-Identifier: Apache-2.0
//
// The host device's book of device allocations and of the bytes that are left. Internal to gpu/host.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include <tl/expected.hpp>

#include <sluice/gpu/device.hpp>

namespace sluice::inline v0::gpu::host {

/// Any thread. Invariant: free bytes plus those of all allocations that are not discarded are constant.
class device_book {
 public:
  explicit device_book(std::size_t num_bytes) : free_bytes_(num_bytes) {}

  /// Pages of the operating system; ENOMEM beyond what is left.
  tl::expected<memory_view, error> allocate(std::size_t num_bytes);
  void release(memory_view range);

  /// As in gpu/device.hpp.
  status discard(memory_view range);
  status restore(memory_view range);

  std::size_t free_bytes() const;

 private:
  struct allocation {
    std::size_t num_bytes = 0;
    bool is_discarded = false;
  };

  /// Null if `range` is no whole allocation. The lock is held.
  allocation* find(memory_view range);

  mutable std::mutex mutex_;  ///< guards the two below
  std::map<const std::byte*, allocation> allocations_;
  std::size_t free_bytes_;
};

}  // namespace sluice::inline v0::gpu::host
