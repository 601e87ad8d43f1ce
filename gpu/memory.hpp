// SPDX-License-Identifier: Apache-2.0
//
// Owners and views of device memory and of host memory that the device can copy from and to.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace sluice::inline v0::gpu {

/// A range of bytes that somebody else owns. Valid as long as its owner lives.
struct memory_view {
  std::byte* data = nullptr;
  std::size_t num_bytes = 0;
};

enum class memory_space { device, host };

/// Owns a range of bytes in one memory space and gives it back when destroyed. Movable, not copyable.
/// May be destroyed on any thread, and only when no copy or kernel that touches it is outstanding.
template <memory_space Space>
class owned_memory {
 public:
  owned_memory() = default;
  owned_memory(memory_view view, std::function<void(memory_view)> release)
      : view_(view), release_(std::move(release)) {}
  owned_memory(owned_memory&& other) noexcept { swap(other); }
  owned_memory& operator=(owned_memory&& other) noexcept {
    owned_memory moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~owned_memory() {
    if (view_.data != nullptr) release_(view_);
  }

  memory_view view() const { return view_; }

  /// Forgets the bytes without giving them back: for memory that an unfinished copy may still touch at exit.
  void leak() { view_ = {}; }

 private:
  void swap(owned_memory& other) noexcept {
    std::swap(view_, other.view_);
    std::swap(release_, other.release_);
  }

  memory_view view_;
  std::function<void(memory_view)> release_;
};

using device_memory = owned_memory<memory_space::device>;
using host_memory = owned_memory<memory_space::host>;

}  // namespace sluice::inline v0::gpu
