// SPDX-License-Identifier: Apache-2.0
//
// The manual device's book of allocations. Internal to gpu/manual.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include <sluice/gpu/manual/manual_device.hpp>

namespace sluice::inline v0::gpu::manual {

/// Owns every byte that the device handed out. Not synchronised: the device locks.
class memory_book {
 public:
  explicit memory_book(options limits) : free_bytes_{limits.device_bytes, limits.host_bytes} {}

  /// Page-aligned and poisoned. ENOMEM beyond the limit; nothing for 0 bytes.
  tl::expected<memory_view, error> allocate(memory_space space, std::size_t num_bytes);

  /// Frees the range now, or with the book if `in_use`.
  void release(memory_view range, bool in_use);

  /// As in gpu/device.hpp; EINVAL also if `in_use`.
  status discard(memory_view range, bool in_use);
  status restore(memory_view range, bool in_use);

  std::size_t free_bytes(memory_space space) const { return free_bytes_[static_cast<std::size_t>(space)]; }
  std::size_t num_premature_releases() const { return num_premature_releases_; }

 private:
  struct page_delete {
    void operator()(std::byte* data) const;
  };
  struct allocation {
    std::unique_ptr<std::byte, page_delete> bytes;
    memory_space space = memory_space::device;
    std::size_t num_bytes = 0;
    bool is_discarded = false;
    bool is_released = false;  ///< under an outstanding batch
  };

  std::size_t& free_bytes_of(memory_space space) { return free_bytes_[static_cast<std::size_t>(space)]; }
  /// The whole device allocation `range`, if it is discarded or not, as wanted, and not in use.
  tl::expected<allocation*, error> find(const std::string& call, memory_view range, bool is_discarded, bool in_use);

  std::map<const std::byte*, allocation> allocations_;
  std::array<std::size_t, 2> free_bytes_;  ///< indexed by memory_space
  std::size_t num_premature_releases_ = 0;
};

}  // namespace sluice::inline v0::gpu::manual
