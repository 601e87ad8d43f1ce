// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/host_stream.hpp>

#include <pthread.h>

#include <cerrno>
#include <exception>
#include <utility>

#include <sluice/gpu/host/copy_kernel.hpp>
#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu::host {

namespace {

constexpr std::size_t max_thread_name_bytes = 15;

/// Sleeps shorter than this cost more than they imitate; the end of a batch is always waited for.
constexpr std::chrono::microseconds min_pause{200};

}  // namespace

host_stream::host_stream(std::string name, shared_state& shared)
    : name_(std::move(name)), shared_(shared), thread_([this] { run(); }) {}

host_stream::~host_stream() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  shared_.steps.forget(*this);
}

status host_stream::enqueue_copies(copy_batch batch, copy_callback done) {
  if (auto good = check_copies(batch, done); !good) return good;
  push([this, batch = std::move(batch), done = std::move(done)] {
    perform(batch);
    done(copy_outcome{batch.copies.size(), std::nullopt});
  });
  return {};
}

status host_stream::enqueue_function(std::function<void()> function) {
  if (!function) return tl::unexpected(usage_error("enqueue_function", "no function"));
  push([this, function = std::move(function)] { call(function); });
  return {};
}

status host_stream::call_when_reached(reached_callback callback) {
  if (!callback) return tl::unexpected(usage_error("call_when_reached", "no callback"));
  push([this, callback = std::move(callback)] { callback(std::exchange(first_error_, std::nullopt)); });
  return {};
}

void host_stream::enqueue_record(std::uint64_t step) {
  push([this, step] { shared_.steps.reach(step); });
}

void host_stream::enqueue_wait(std::uint64_t step) {
  push([this, step] { shared_.steps.wait(step); });
}

void host_stream::push(operation pushed) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back(std::move(pushed));
  }
  changed_.notify_one();
}

void host_stream::run() {
  pthread_setname_np(pthread_self(), name_.substr(0, max_thread_name_bytes).c_str());
  while (true) {
    operation front;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      front = std::move(queue_.front());
      queue_.pop_front();
    }
    front();
  }
}

void host_stream::perform(const copy_batch& batch) {
  std::size_t num_bytes = 0;
  for (const copy& one : batch.copies) num_bytes += one.num_bytes;
  link& used = batch.direction == copy_direction::to_device ? shared_.to_device : shared_.to_host;
  const timetable times = used.reserve(num_bytes);
  pause_until(times.first_byte);

  std::size_t num_arrived = 0;
  for (const copy& one : batch.copies) {
    copy_bytes(one.destination, one.source, one.num_bytes);
    num_arrived += one.num_bytes;
    if (times.ns_per_byte > 0) pause_until(times.arrival(num_arrived) - min_pause);
  }
  pause_until(times.arrival(num_arrived));
}

void host_stream::call(const std::function<void()>& function) {
  std::string text;
  try {
    function();
    return;
  } catch (const std::exception& thrown) {
    text = thrown.what();
  } catch (...) {
    text = "unknown exception";
  }
  if (!first_error_) first_error_ = error{"enqueue_function", ECANCELED, std::move(text), 0};
}

void host_stream::pause_until(clock::time_point time) {
  if (time <= clock::now()) return;
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, time, [this] { return closing_; });
}

}  // namespace sluice::inline v0::gpu::host
