// SPDX-License-Identifier: Apache-2.0
//
// How much memory this process can still touch.
#pragma once

#include <cstddef>

namespace sluice::inline v0::gpu::host {

/// The smaller of the system's available memory and what the limits of this process's cgroup and of those above it
/// leave (versions 1 and 2), file caches that can be dropped counted as free. 0 if nothing can be read. Any thread.
std::size_t available_memory_bytes();

}  // namespace sluice::inline v0::gpu::host
