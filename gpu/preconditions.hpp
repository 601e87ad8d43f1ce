// SPDX-License-Identifier: Apache-2.0
//
// What every backend refuses before it enqueues anything. For backends, not for their users. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/gpu/device.hpp>
#include <sluice/gpu/error.hpp>
#include <sluice/gpu/memory.hpp>

namespace sluice::inline v0::gpu {

/// The operating system's text for `code`, an errno value.
error errno_error(std::string call, int code, std::size_t num_bytes = 0);

/// A call that breaks the seam's contract: code EINVAL.
error usage_error(std::string call, std::string text, std::size_t num_bytes = 0);

/// EINVAL for a null address with bytes to copy, or for an empty `done`. A batch without copies is good.
status check_copies(const copy_batch& batch, const copy_callback& done);

/// EINVAL for a range that is no whole living allocation of device memory.
tl::unexpected<error> unknown_allocation(std::string call, memory_view range);

}  // namespace sluice::inline v0::gpu
