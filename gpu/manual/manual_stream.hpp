// SPDX-License-Identifier: Apache-2.0
//
// The manual device's stream: a queue that runs when told to. Internal to gpu/manual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <sluice/gpu/manual/manual_device.hpp>
#include <sluice/gpu/step_counters.hpp>

namespace sluice::inline v0::gpu::manual {

class manual_stream;

/// What the device and its streams share. Everything below is guarded by `mutex`.
struct shared_state {
  mutable std::recursive_mutex mutex;
  step_counters steps;
  std::vector<manual_stream*> streams;  ///< the living ones, in the order in which they were made
  std::set<std::string> inline_names;
};

/// Enqueueing and destruction lock; every other function wants the lock held.
class manual_stream final : public stream {
 public:
  manual_stream(std::string name, shared_state& shared);
  ~manual_stream() override;
  manual_stream(const manual_stream&) = delete;
  manual_stream& operator=(const manual_stream&) = delete;

  const std::string& name() const override { return name_; }
  status enqueue_copies(copy_batch batch, copy_callback done) override;
  status enqueue_function(std::function<void()> function) override;
  status call_when_reached(reached_callback callback) override;
  void enqueue_record(std::uint64_t step);
  void enqueue_wait(std::uint64_t step);

  bool belongs_to(const shared_state& shared) const { return &shared == &shared_; }
  bool empty() const { return queue_.empty(); }
  bool runnable() const;
  std::vector<operation> outstanding() const;
  /// Appends what outstanding batches read (or write) to `accesses`.
  void append_reads(std::vector<memory_access>& accesses) const;
  void append_writes(std::vector<memory_access>& accesses) const;

  /// Position in the queue of the batch with that tag.
  std::optional<std::size_t> find_copies(std::uint64_t tag) const;
  /// The first step that keeps the first `num_operations` from running one after the other.
  std::optional<std::uint64_t> blocking_step(std::size_t num_operations) const;
  std::size_t num_copies(std::size_t position) const;

  /// Runs the operation at the front, which must be runnable.
  void run_front();
  /// Runs operations until empty or not runnable; returns how many.
  std::size_t run_ready();
  /// The operation at the front must be a batch for these two.
  void start_front(std::size_t num_copies);
  void fail_front(std::size_t num_good_copies, bad_copy leaves);

  void set_inline();
  void refuse_next_copies(error reason) { refusal_ = std::move(reason); }
  void refuse_next_call(error reason) { call_refusal_ = std::move(reason); }

 private:
  // In the order of operation_kind.
  struct copies_entry {
    copy_batch batch;
    copy_callback done;
    std::size_t num_performed = 0;
  };
  struct function_entry {
    std::function<void()> function;
  };
  struct record_entry {
    std::uint64_t step;
  };
  struct wait_entry {
    std::uint64_t step;
  };
  struct callback_entry {
    reached_callback callback;
  };
  using entry = std::variant<copies_entry, function_entry, record_entry, wait_entry, callback_entry>;

  void push(entry pushed);
  void run_inline();
  entry pop();
  void run(copies_entry& copies);
  void run(function_entry& function);
  void run(record_entry& record);
  void run(wait_entry& wait);
  void run(callback_entry& callback);
  void remember(const error& err);

  const std::string name_;
  shared_state& shared_;
  std::deque<entry> queue_;
  std::optional<error> first_error_;
  std::optional<error> refusal_;
  std::optional<error> call_refusal_;
  bool inline_ = false;
  bool running_inline_ = false;
};

}  // namespace sluice::inline v0::gpu::manual
