// SPDX-License-Identifier: Apache-2.0
//
// A device without a card: real memory, real copies, one worker thread per stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <sluice/gpu/device.hpp>

namespace sluice::inline v0::gpu::host {

/// Limits imitate a link: all streams of a device share one bandwidth per direction, and each batch begins
/// `latency` late. A value that is not positive means no limit, no latency.
struct options {
  double load_gib_per_s = 0;            ///< host to device
  double store_gib_per_s = 0;           ///< device to host
  std::chrono::nanoseconds latency{0};  ///< once per batch, both directions
  std::uint64_t device_bytes = 0;       ///< what can be allocated; 0: the memory available now
};

/// Any thread. The device keeps the rules of gpu/device.hpp, and beyond them says:
///
/// 1. A stream runs its queue in order on a thread of its own, named after the stream (first 15 bytes). A wait
///    blocks that thread only. Neither callbacks nor functions may destroy a stream; callbacks must not throw.
/// 2. Copies cannot fail, so every outcome is good. A host function that throws ends, those behind it still run;
///    the error has the call "enqueue_function", code ECANCELED and the exception's text.
/// 3. Destroying a stream runs all it holds, without latency and bandwidth limits of its own, and blocks until
///    then. Streams may be destroyed in any order: a pending wait is for a step that was recorded, hence queued
///    on a stream whose thread comes to it, or which ends only after it came to it. As one stream at a time
///    records and never waits for itself, no circle can arise. So destroying a waiting stream blocks until the
///    recording stream, at its own pace, has reached the step; destroy the recording stream first to hurry both.
/// 4. A wait enqueued for step n is over once any step >= n is reached. `wait_step` for a step that was not
///    recorded, `record_step` for one that does not rise or while another living stream records, and streams of
///    another device are errors with code EINVAL, as are empty callbacks and null addresses.
/// 5. Memory is reserved with `mmap` and committed when touched, in huge pages where the system gives them. An
///    error has the call ("mmap", "allocate_device"), the errno and its text, and the bytes asked for. 0 bytes
///    give an empty owner. Allocations beyond `device_bytes` fail with ENOMEM.
/// 6. Discarded memory goes back to the operating system, and every access to it is a fault until it is restored,
///    when it reads as zeros.
std::unique_ptr<device> make_device(options chosen = {});

}  // namespace sluice::inline v0::gpu::host
