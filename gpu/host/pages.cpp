// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/pages.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu::host {

namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

/// Cuts `num_bytes` that begin on a huge page out of a reservation that is one huge page longer.
std::byte* trim(std::byte* begin, std::size_t num_bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t head = round_up(address, huge_page_bytes) - address;
  if (head != 0) munmap(begin, head);
  if (head != huge_page_bytes) munmap(begin + head + num_bytes, huge_page_bytes - head);
  return begin + head;
}

tl::expected<void, error> protect(memory_view range, int access) {
  if (mprotect(range.data, round_up(range.num_bytes, page_bytes()), access) == 0) return {};
  return tl::unexpected(errno_error("mprotect", errno, range.num_bytes));
}

}  // namespace

tl::expected<memory_view, error> map_pages(std::size_t num_bytes) {
  if (num_bytes == 0) return memory_view{};
  if (num_bytes > std::numeric_limits<std::size_t>::max() / 2)
    return tl::unexpected(errno_error("mmap", ENOMEM, num_bytes));
  const bool is_large = num_bytes >= huge_page_bytes;
  const std::size_t whole_bytes = round_up(num_bytes, page_bytes());
  const std::size_t mapped_bytes = whole_bytes + (is_large ? huge_page_bytes : 0);
  void* raw = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return tl::unexpected(errno_error("mmap", errno, num_bytes));
  auto* data = static_cast<std::byte*>(raw);
  if (is_large) {
    data = trim(data, whole_bytes);
    madvise(data, whole_bytes, MADV_HUGEPAGE);  // A wish; without it the memory is only slower.
  }
  return memory_view{data, num_bytes};
}

tl::expected<void, error> discard_pages(memory_view range) {
  const std::size_t whole_bytes = round_up(range.num_bytes, page_bytes());
  if (auto closed = protect(range, PROT_NONE); !closed) return closed;
  if (madvise(range.data, whole_bytes, MADV_DONTNEED) == 0) return {};
  const int code = errno;
  mprotect(range.data, whole_bytes, PROT_READ | PROT_WRITE);
  return tl::unexpected(errno_error("madvise", code, range.num_bytes));
}

tl::expected<void, error> restore_pages(memory_view range) { return protect(range, PROT_READ | PROT_WRITE); }

void unmap_pages(memory_view range) {
  if (range.data != nullptr) munmap(range.data, round_up(range.num_bytes, page_bytes()));
}

}  // namespace sluice::inline v0::gpu::host
