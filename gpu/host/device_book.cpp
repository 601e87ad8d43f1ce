// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/device_book.hpp>

#include <cerrno>

#include <sluice/gpu/host/pages.hpp>
#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu::host {

tl::expected<memory_view, error> device_book::allocate(std::size_t num_bytes) {
  const std::scoped_lock lock(mutex_);
  if (num_bytes > free_bytes_) return tl::unexpected(errno_error("allocate_device", ENOMEM, num_bytes));
  return map_pages(num_bytes).map([&](memory_view range) {
    if (range.data == nullptr) return range;
    allocations_[range.data] = {num_bytes, false};
    free_bytes_ -= num_bytes;
    return range;
  });
}

void device_book::release(memory_view range) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(range.data);
  if (!found->second.is_discarded) free_bytes_ += range.num_bytes;
  allocations_.erase(found);
  unmap_pages(range);
}

status device_book::discard(memory_view range) {
  const std::scoped_lock lock(mutex_);
  allocation* const found = find(range);
  if (found == nullptr) return unknown_allocation("discard", range);
  if (found->is_discarded) return tl::unexpected(usage_error("discard", "discarded already", range.num_bytes));
  return discard_pages(range).map([&] {
    found->is_discarded = true;
    free_bytes_ += range.num_bytes;
  });
}

status device_book::restore(memory_view range) {
  const std::scoped_lock lock(mutex_);
  allocation* const found = find(range);
  if (found == nullptr) return unknown_allocation("restore", range);
  if (!found->is_discarded) return tl::unexpected(usage_error("restore", "not discarded", range.num_bytes));
  if (range.num_bytes > free_bytes_) return tl::unexpected(errno_error("restore", ENOMEM, range.num_bytes));
  return restore_pages(range).map([&] {
    found->is_discarded = false;
    free_bytes_ -= range.num_bytes;
  });
}

std::size_t device_book::free_bytes() const {
  const std::scoped_lock lock(mutex_);
  return free_bytes_;
}

device_book::allocation* device_book::find(memory_view range) {
  const auto found = allocations_.find(range.data);
  return found != allocations_.end() && found->second.num_bytes == range.num_bytes ? &found->second : nullptr;
}

}  // namespace sluice::inline v0::gpu::host
