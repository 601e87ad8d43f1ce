// SPDX-License-Identifier: Apache-2.0
//
// Memory straight from the operating system: reserved now, committed when touched.
#pragma once

#include <cstddef>

#include <tl/expected.hpp>

#include <sluice/gpu/error.hpp>
#include <sluice/gpu/memory.hpp>

namespace sluice::inline v0::gpu::host {

/// Zeroed when touched; from 2 MiB on it begins on a huge page. Any thread. The error has the call "mmap", the
/// errno and the bytes; 0 bytes give an empty view.
tl::expected<memory_view, error> map_pages(std::size_t num_bytes);

/// Gives the memory behind a mapping back and makes every access to it a fault. On an error nothing has changed.
tl::expected<void, error> discard_pages(memory_view range);

/// Makes a discarded mapping usable again; zeroed when touched.
tl::expected<void, error> restore_pages(memory_view range);

/// Gives back what `map_pages` gave.
void unmap_pages(memory_view range);

}  // namespace sluice::inline v0::gpu::host
