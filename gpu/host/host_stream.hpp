// SPDX-License-Identifier: Apache-2.0
//
// The host device's stream: a queue and the thread that runs it. Internal to gpu/host.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <sluice/gpu/device.hpp>
#include <sluice/gpu/host/link.hpp>
#include <sluice/gpu/host/step_board.hpp>

namespace sluice::inline v0::gpu::host {

/// What the streams of a device share.
struct shared_state {
  link to_device;
  link to_host;
  step_board steps;
};

class host_stream final : public stream {
 public:
  /// Throws std::system_error if there is no thread to be had.
  host_stream(std::string name, shared_state& shared);
  ~host_stream() override;
  host_stream(const host_stream&) = delete;
  host_stream& operator=(const host_stream&) = delete;

  const std::string& name() const override { return name_; }
  status enqueue_copies(copy_batch batch, copy_callback done) override;
  status enqueue_function(std::function<void()> function) override;
  status call_when_reached(reached_callback callback) override;
  void enqueue_record(std::uint64_t step);
  void enqueue_wait(std::uint64_t step);

  bool belongs_to(const shared_state& shared) const { return &shared == &shared_; }

 private:
  using operation = std::function<void()>;

  void push(operation pushed);

  // On the stream's thread.
  void run();
  void perform(const copy_batch& batch);
  void call(const std::function<void()>& function);
  void pause_until(clock::time_point time);

  const std::string name_;
  shared_state& shared_;
  std::optional<error> first_error_;  ///< the stream's thread only

  std::mutex mutex_;  ///< guards the two below
  std::deque<operation> queue_;
  bool closing_ = false;
  std::condition_variable changed_;

  std::thread thread_;  ///< last: begins to run when constructed
};

}  // namespace sluice::inline v0::gpu::host
