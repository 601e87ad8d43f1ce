// SPDX-License-Identifier: Apache-2.0
//
// A device for tests and simulation on which nothing completes before the test says so, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sluice/gpu/device.hpp>

namespace sluice::inline v0::gpu::manual {

/// What freshly allocated memory is filled with.
inline constexpr std::byte device_poison{0xD5};
inline constexpr std::byte host_poison{0x5A};
/// What discarded device memory is filled with until it is restored; then it is `device_poison` again.
inline constexpr std::byte discarded_poison{0xDD};

/// How much may be allocated; more fails with ENOMEM.
struct options {
  std::size_t device_bytes = std::size_t{1} << 30;
  std::size_t host_bytes = std::size_t{1} << 30;
};

enum class operation_kind : std::uint8_t { copies, function, record, wait, callback };

/// One entry of a stream's queue. `tag` is the batch's tag for copies, the step for record and wait, else 0.
struct operation {
  operation_kind kind = operation_kind::copies;
  std::uint64_t tag = 0;

  friend bool operator==(const operation&, const operation&) = default;
};

/// Bytes that an outstanding batch may still touch. A batch may touch all its bytes until its callback.
struct memory_access {
  const std::byte* data = nullptr;
  std::size_t num_bytes = 0;
  std::uint64_t tag = 0;
  std::string stream_name;

  bool overlaps(memory_view range) const;
};

/// What a failed copy leaves in its destination: nothing, or the first half of its bytes.
enum class bad_copy : std::uint8_t { untouched, torn };

/// Real memory and real copies, no threads: an operation runs inside the call of the test that names it, and so
/// do its callbacks. On an inline stream operations run at enqueue time as far as they are runnable, so a
/// callback may run *inside* the enqueue call. A wait is runnable once its step was reached; everything else is
/// always runnable when it is at the front. What an inline stream could not run runs when the step is reached.
///
/// Any thread may call anything; calls run one at a time, callbacks and functions included. Neither a callback nor
/// a function may destroy a stream or drive one (`step`, `run_all`, ...).
///
/// Functions that take a name speak of the living stream that was made last under it. Tags ought to be unique
/// among outstanding batches; of equal ones the oldest of the stream that was made first is meant. A returned
/// error (code EINVAL) says why, and then nothing was run. `EXPECT_TRUE(device.step("load"))` works.
///
/// Destroying a stream runs all it holds; for a wait, the recording stream is run up to that step first.
/// Memory that is given back while an outstanding batch touches it is counted and kept until the device ends;
/// discarding or restoring it then is refused.
/// Any memory still held when the device is destroyed goes with it.
class manual_device final : public device {
 public:
  explicit manual_device(options limits = {});
  ~manual_device() override;
  manual_device(const manual_device&) = delete;
  manual_device& operator=(const manual_device&) = delete;

  device_info info() const override;
  tl::expected<device_memory, error> allocate_device(std::size_t num_bytes) override;
  status discard(memory_view range) override;
  status restore(memory_view range) override;
  tl::expected<host_memory, error> allocate_host(std::size_t num_bytes) override;
  tl::expected<std::unique_ptr<stream>, error> make_stream(std::string name) override;
  status record_step(stream& on, std::uint64_t step) override;
  status wait_step(stream& on, std::uint64_t step) override;

  // Look.

  /// In the order in which they were made.
  std::vector<std::string> stream_names() const;
  /// Those with an operation at the front that can run.
  std::vector<std::string> runnable_streams() const;
  /// The queue of a stream, front first. Empty for an unknown name.
  std::vector<operation> outstanding(const std::string& stream_name) const;
  /// Tags of all outstanding batches, stream by stream.
  std::vector<std::uint64_t> outstanding_tags() const;
  std::vector<memory_access> outstanding_reads() const;
  std::vector<memory_access> outstanding_writes() const;
  /// No stream holds an operation.
  bool idle() const;
  /// How often memory was given back under an outstanding batch. Anything but 0 is a fault.
  std::size_t num_premature_releases() const;

  // Drive.

  /// Runs the operation at the front.
  [[nodiscard]] status step(const std::string& stream_name);
  /// Runs everything up to and including the batch `tag`.
  [[nodiscard]] status complete_copies(std::uint64_t tag);
  /// Runs everything before the batch `tag` and performs its leading copies until `num_copies` are done, without
  /// ending it: what a device has done half way. Completing it later performs the others only.
  [[nodiscard]] status start_copies(std::uint64_t tag, std::size_t num_copies);
  /// Runs everything before the batch `tag`, performs its leading `num_good_copies` and ends it with a failure.
  [[nodiscard]] status fail_copies(std::uint64_t tag, std::size_t num_good_copies,
                                   bad_copy leaves = bad_copy::untouched);
  /// Runs the stream until it is empty or not runnable. Returns the number of operations run.
  std::size_t run_all(const std::string& stream_name);
  /// Round robin, one operation each, until no stream is runnable. Returns the number of operations run.
  std::size_t run_everything();

  // Arrange.

  /// From now on this stream, and any made later under the name, runs operations at enqueue time. Runs what
  /// it holds as far as it is runnable.
  void set_inline(const std::string& stream_name);
  /// The next `enqueue_copies` on the stream returns this error. EINVAL for an unknown name.
  [[nodiscard]] status refuse_next_copies(const std::string& stream_name, error reason);
  /// The same for the next `call_when_reached`.
  [[nodiscard]] status refuse_next_call(const std::string& stream_name, error reason);

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace sluice::inline v0::gpu::manual
