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

void fill(memory_view range, std::byte value) {
  std::memset(range.data, std::to_integer<int>(value), range.num_bytes);
}

}  // namespace

void memory_book::page_delete::operator()(std::byte* data) const { ::operator delete(data, page); }

tl::expected<memory_view, error> memory_book::allocate(memory_space space, std::size_t num_bytes) {
  if (num_bytes == 0) return memory_view{};
  const bool on_device = space == memory_space::device;
  std::size_t& free_here = free_bytes_of(space);
  void* raw = num_bytes <= free_here ? ::operator new(num_bytes, page, std::nothrow) : nullptr;
  if (raw == nullptr)
    return tl::unexpected(errno_error(on_device ? "allocate_device" : "allocate_host", ENOMEM, num_bytes));
  auto* data = static_cast<std::byte*>(raw);
  fill({data, num_bytes}, on_device ? device_poison : host_poison);
  allocations_[data] = allocation{std::unique_ptr<std::byte, page_delete>(data), space, num_bytes};
  free_here -= num_bytes;
  return memory_view{data, num_bytes};
}

void memory_book::release(memory_view range, bool in_use) {
  const auto found = allocations_.find(range.data);
  if (!found->second.is_discarded) free_bytes_of(found->second.space) += range.num_bytes;
  if (in_use) {
    ++num_premature_releases_;
    found->second.is_released = true;
  } else {
    allocations_.erase(found);
  }
}

status memory_book::discard(memory_view range, bool in_use) {
  return find("discard", range, false, in_use).map([&](allocation* found) {
    found->is_discarded = true;
    free_bytes_of(memory_space::device) += range.num_bytes;
    fill(range, discarded_poison);
  });
}

status memory_book::restore(memory_view range, bool in_use) {
  const auto found = find("restore", range, true, in_use);
  if (!found) return tl::unexpected(found.error());
  std::size_t& free_here = free_bytes_of(memory_space::device);
  if (range.num_bytes > free_here) return tl::unexpected(errno_error("restore", ENOMEM, range.num_bytes));
  (*found)->is_discarded = false;
  free_here -= range.num_bytes;
  fill(range, device_poison);
  return {};
}

tl::expected<memory_book::allocation*, error> memory_book::find(const std::string& call, memory_view range,
                                                                bool is_discarded, bool in_use) {
  const auto refuse = [&](std::string text) {
    return tl::unexpected(usage_error(call, std::move(text), range.num_bytes));
  };
  const auto found = allocations_.find(range.data);
  if (found == allocations_.end() || found->second.space != memory_space::device ||
      found->second.num_bytes != range.num_bytes || found->second.is_released)
    return unknown_allocation(call, range);
  if (found->second.is_discarded != is_discarded) return refuse(is_discarded ? "not discarded" : "discarded already");
  if (in_use) return refuse("an outstanding batch touches the memory");
  return &found->second;
}

}  // namespace sluice::inline v0::gpu::manual
