// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/preconditions.hpp>

#include <cerrno>
#include <system_error>
#include <utility>

namespace sluice::inline v0::gpu {

error errno_error(std::string call, int code, std::size_t num_bytes) {
  return error{std::move(call), code, std::generic_category().message(code), num_bytes};
}

error usage_error(std::string call, std::string text, std::size_t num_bytes) {
  return error{std::move(call), EINVAL, std::move(text), num_bytes};
}

status check_copies(const copy_batch& batch, const copy_callback& done) {
  if (!done) return tl::unexpected(usage_error("enqueue_copies", "no callback"));
  for (const copy& one : batch.copies) {
    if (one.num_bytes != 0 && (one.destination == nullptr || one.source == nullptr))
      return tl::unexpected(usage_error("enqueue_copies", "a copy has a null address", one.num_bytes));
  }
  return {};
}

tl::unexpected<error> unknown_allocation(std::string call, memory_view range) {
  return tl::unexpected(usage_error(std::move(call), "not a whole allocation of device memory", range.num_bytes));
}

}  // namespace sluice::inline v0::gpu
