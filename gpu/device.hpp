// SPDX-License-Identifier: Apache-2.0
//
// The device seam: memory, streams and step events. Backends: host (real memory, real copies, one worker
// thread per stream), manual (tests; nothing completes before the test says so), cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include <sluice/gpu/error.hpp>
#include <sluice/gpu/memory.hpp>

namespace sluice::inline v0::gpu {

using status = tl::expected<void, error>;

enum class copy_direction : std::uint8_t { to_device, to_host };

struct copy {
  std::byte* destination = nullptr;
  const std::byte* source = nullptr;
  std::size_t num_bytes = 0;
};

/// A batch of copies in one direction. `tag` names the batch in traces and to the manual device.
struct copy_batch {
  std::vector<copy> copies;
  copy_direction direction = copy_direction::to_device;
  std::uint64_t tag = 0;
};

/// The physical end of a batch: the memory it touched is quiet. `num_good_copies` counts the leading copies
/// whose bytes are known to be good; all of them when there is no failure.
struct copy_outcome {
  std::size_t num_good_copies = 0;
  std::optional<error> failure;
};

/// Called exactly once, on the stream's thread. May only post a message: it must not block, and must not call
/// into the stream or its device.
using copy_callback = std::function<void(const copy_outcome&)>;
using reached_callback = std::function<void(const std::optional<error>&)>;

/// An ordered queue of device work. Every function enqueues and returns without waiting for the work.
/// One thread at a time may enqueue. Destroying a stream waits for what it holds.
class stream {
 public:
  virtual ~stream() = default;

  virtual const std::string& name() const = 0;

  /// Enqueues `batch`, does not synchronise; source and destination must stay valid until `done` is called.
  /// On an error return nothing was enqueued and `done` is never called.
  virtual status enqueue_copies(copy_batch batch, copy_callback done) = 0;

  /// Enqueues a host function, does not synchronise; what it touches must stay valid until a later
  /// `call_when_reached` has called back. An exception that leaves `function` becomes the error of the next
  /// `call_when_reached`.
  virtual status enqueue_function(std::function<void()> function) = 0;

  /// Calls back when everything enqueued so far has ended; the argument is the first error since the
  /// previous such call.
  virtual status call_when_reached(reached_callback callback) = 0;
};

/// What a device can tell about itself.
struct device_info {
  std::string name;                 ///< "host", "manual" or the card's name
  std::size_t free_device_bytes = 0;
};

/// Owns memory and hands out streams. Outlives everything that it handed out.
///
/// Step events order streams against the compute stream. They are named by a rising step number and are
/// recorded on one stream only; reaching step n includes reaching every lower recorded step.
class device {
 public:
  virtual ~device() = default;

  virtual device_info info() const = 0;

  /// Any thread. Contents are undefined.
  virtual tl::expected<device_memory, error> allocate_device(std::size_t num_bytes) = 0;

  /// Gives the physical memory behind `range`, a whole living allocation of `allocate_device`, back; its addresses
  /// stay reserved, and `info` counts it as free. Until it is restored nothing may touch it, work that was enqueued
  /// before included. Any thread. EINVAL if there is no such allocation, or it is discarded already.
  virtual status discard(memory_view range) = 0;

  /// Takes memory for a discarded allocation again. Contents are undefined. Any thread. EINVAL if there is no such
  /// allocation, or it is not discarded; ENOMEM if others have the memory now, and then it stays discarded.
  virtual status restore(memory_view range) = 0;

  /// Host memory the device copies from and to at full speed. Any thread. Address space is reserved now and
  /// committed when touched, where the backend can.
  virtual tl::expected<host_memory, error> allocate_host(std::size_t num_bytes) = 0;

  /// Any thread. `name` shows in traces and thread names.
  virtual tl::expected<std::unique_ptr<stream>, error> make_stream(std::string name) = 0;

  /// Enqueues the recording of step `step`'s event on `on`, does not synchronise. `step` must be above every
  /// step recorded before.
  virtual status record_step(stream& on, std::uint64_t step) = 0;

  /// Enqueues a wait of `on` for step `step`'s event, does not synchronise. 0 waits for nothing. It is an
  /// error if no step >= `step` has been recorded yet.
  virtual status wait_step(stream& on, std::uint64_t step) = 0;
};

}  // namespace sluice::inline v0::gpu
