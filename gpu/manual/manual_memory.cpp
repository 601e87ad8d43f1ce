// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/manual/manual_memory.hpp>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu::manual {

namespace {

constexpr std::align_val_t page{4096};

}  // namespace

void memory_book::page_delete::operator()(std::byte* data) const { ::operator delete(data, page); }

tl::expected<memory_view, error> memory_book::allocate(memory_space space, std::size_t num_bytes) {
  if (num_bytes == 0) return memory_view{};
  const bool on_device = space == memory_space::device;
  std::size_t& free_here = free_bytes_[static_cast<std::size_t>(space)];
  void* raw = num_bytes <= free_here ? ::operator new(num_bytes, page, std::nothrow) : nullptr;
  if (raw == nullptr)
    return tl::unexpected(errno_error(on_device ? "allocate_device" : "allocate_host", ENOMEM, num_bytes));
  std::memset(raw, std::to_integer<int>(on_device ? device_poison : host_poison), num_bytes);
  auto* data = static_cast<std::byte*>(raw);
  allocations_[data] = allocation{std::unique_ptr<std::byte, page_delete>(data), space};
  free_here -= num_bytes;
  return memory_view{data, num_bytes};
}

void memory_book::release(memory_view range, bool in_use) {
  const auto found = allocations_.find(range.data);
  free_bytes_[static_cast<std::size_t>(found->second.space)] += range.num_bytes;
  if (in_use) {
    ++num_premature_releases_;
  } else {
    allocations_.erase(found);
  }
}

}  // namespace sluice::inline v0::gpu::manual
