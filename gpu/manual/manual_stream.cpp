// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/manual/manual_stream.hpp>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu::manual {

namespace {

void perform(const copy& one, std::size_t num_bytes) {
  if (num_bytes != 0) std::memcpy(one.destination, one.source, num_bytes);
}

}  // namespace

manual_stream::manual_stream(std::string name, shared_state& shared)
    : name_(std::move(name)), shared_(shared), inline_(shared.inline_names.contains(name_)) {
  shared_.streams.push_back(this);
}

manual_stream::~manual_stream() {
  const std::scoped_lock lock(shared_.mutex);
  while (!queue_.empty()) {
    if (runnable()) {
      run_front();
      continue;
    }
    // What this stream waits for is queued on the recording stream, which itself never waits in vain.
    const auto recorder = std::ranges::find(shared_.streams, shared_.steps.recorder());
    assert(recorder != shared_.streams.end() && *recorder != this);
    (*recorder)->run_front();
  }
  shared_.steps.forget(*this);
  std::erase(shared_.streams, this);
}

status manual_stream::enqueue_copies(copy_batch batch, copy_callback done) {
  const std::scoped_lock lock(shared_.mutex);
  if (auto good = check_copies(batch, done); !good) return good;
  if (refusal_) return tl::unexpected(*std::exchange(refusal_, std::nullopt));
  push(copies_entry{std::move(batch), std::move(done)});
  return {};
}

status manual_stream::enqueue_function(std::function<void()> function) {
  const std::scoped_lock lock(shared_.mutex);
  if (!function) return tl::unexpected(usage_error("enqueue_function", "no function"));
  push(function_entry{std::move(function)});
  return {};
}

status manual_stream::call_when_reached(reached_callback callback) {
  const std::scoped_lock lock(shared_.mutex);
  if (!callback) return tl::unexpected(usage_error("call_when_reached", "no callback"));
  if (call_refusal_) return tl::unexpected(*std::exchange(call_refusal_, std::nullopt));
  push(callback_entry{std::move(callback)});
  return {};
}

void manual_stream::enqueue_record(std::uint64_t step) { push(record_entry{step}); }

void manual_stream::enqueue_wait(std::uint64_t step) { push(wait_entry{step}); }

bool manual_stream::runnable() const { return !queue_.empty() && !blocking_step(1); }

std::vector<operation> manual_stream::outstanding() const {
  std::vector<operation> all;
  for (const entry& queued : queue_) {
    std::uint64_t tag = 0;
    if (const auto* copies = std::get_if<copies_entry>(&queued)) tag = copies->batch.tag;
    if (const auto* record = std::get_if<record_entry>(&queued)) tag = record->step;
    if (const auto* wait = std::get_if<wait_entry>(&queued)) tag = wait->step;
    all.push_back({static_cast<operation_kind>(queued.index()), tag});
  }
  return all;
}

void manual_stream::append_reads(std::vector<memory_access>& accesses) const {
  for (const entry& queued : queue_) {
    if (const auto* copies = std::get_if<copies_entry>(&queued)) {
      for (const copy& one : copies->batch.copies)
        accesses.push_back({one.source, one.num_bytes, copies->batch.tag, name_});
    }
  }
}

void manual_stream::append_writes(std::vector<memory_access>& accesses) const {
  for (const entry& queued : queue_) {
    if (const auto* copies = std::get_if<copies_entry>(&queued)) {
      for (const copy& one : copies->batch.copies)
        accesses.push_back({one.destination, one.num_bytes, copies->batch.tag, name_});
    }
  }
}

std::optional<std::size_t> manual_stream::find_copies(std::uint64_t tag) const {
  for (std::size_t position = 0; position < queue_.size(); ++position) {
    const auto* copies = std::get_if<copies_entry>(&queue_[position]);
    if (copies != nullptr && copies->batch.tag == tag) return position;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> manual_stream::blocking_step(std::size_t num_operations) const {
  std::uint64_t will_be_reached = 0;
  for (std::size_t position = 0; position < num_operations; ++position) {
    if (const auto* record = std::get_if<record_entry>(&queue_[position])) will_be_reached = record->step;
    const auto* wait = std::get_if<wait_entry>(&queue_[position]);
    if (wait != nullptr && wait->step > will_be_reached && !shared_.steps.is_reached(wait->step)) return wait->step;
  }
  return std::nullopt;
}

std::size_t manual_stream::num_copies(std::size_t position) const {
  return std::get<copies_entry>(queue_[position]).batch.copies.size();
}

void manual_stream::run_front() {
  assert(runnable());
  // Off the queue first: a callback sees itself as ended, and may run inside a call that pushes.
  entry front = pop();
  std::visit([this](auto& popped) { run(popped); }, front);
}

std::size_t manual_stream::run_ready() {
  std::size_t num_run = 0;
  for (; runnable(); ++num_run) run_front();
  return num_run;
}

void manual_stream::start_front(std::size_t num_copies) {
  auto& copies = std::get<copies_entry>(queue_.front());
  for (; copies.num_performed < num_copies; ++copies.num_performed) {
    const copy& one = copies.batch.copies[copies.num_performed];
    perform(one, one.num_bytes);
  }
}

void manual_stream::fail_front(std::size_t num_good_copies, bad_copy leaves) {
  start_front(num_good_copies);
  entry front = pop();
  auto& copies = std::get<copies_entry>(front);
  error failure = errno_error("copy", EIO);
  if (num_good_copies < copies.batch.copies.size()) {
    const copy& bad = copies.batch.copies[num_good_copies];
    failure.num_bytes = bad.num_bytes;
    if (leaves == bad_copy::torn) perform(bad, bad.num_bytes / 2);
  }
  remember(failure);
  copies.done(copy_outcome{num_good_copies, std::move(failure)});
}

void manual_stream::set_inline() {
  inline_ = true;
  run_inline();
}

void manual_stream::run_inline() {
  // What runs now may itself push; the outer call then runs that, so that the order holds.
  if (!inline_ || running_inline_) return;
  running_inline_ = true;
  run_ready();
  running_inline_ = false;
}

void manual_stream::push(entry pushed) {
  queue_.push_back(std::move(pushed));
  run_inline();
}

manual_stream::entry manual_stream::pop() {
  entry front = std::move(queue_.front());
  queue_.pop_front();
  return front;
}

void manual_stream::run(copies_entry& copies) {
  for (; copies.num_performed < copies.batch.copies.size(); ++copies.num_performed) {
    const copy& one = copies.batch.copies[copies.num_performed];
    perform(one, one.num_bytes);
  }
  copies.done(copy_outcome{copies.batch.copies.size(), std::nullopt});
}

void manual_stream::run(function_entry& function) {
  try {
    function.function();
  } catch (const std::exception& thrown) {
    remember(error{"enqueue_function", ECANCELED, thrown.what(), 0});
  } catch (...) {
    remember(error{"enqueue_function", ECANCELED, "unknown exception", 0});
  }
}

void manual_stream::run(record_entry& record) {
  shared_.steps.reach(record.step);
  // By position: a callback may make a stream.
  for (std::size_t position = 0; position < shared_.streams.size(); ++position) {
    manual_stream& other = *shared_.streams[position];
    if (&other != this) other.run_inline();
  }
}

void manual_stream::run(wait_entry&) {}

void manual_stream::run(callback_entry& callback) { callback.callback(std::exchange(first_error_, std::nullopt)); }

void manual_stream::remember(const error& err) {
  if (!first_error_) first_error_ = err;
}

}  // namespace sluice::inline v0::gpu::manual
