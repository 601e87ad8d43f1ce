// SPDX-License-Identifier: Apache-2.0
//
// A runtime with real threads: host device, tiny model, byte tokenizer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/runtime/builtin.hpp>
#include <sluice/runtime/runtime.hpp>

namespace sluice::testing {

/// A client that waits for what it wants to see, at most 30 seconds.
class waiting_client final : public request_sink {
 public:
  void delta(const token_delta& delta) override {
    std::lock_guard lock(mutex_);
    tokens_.insert(tokens_.end(), delta.tokens.begin(), delta.tokens.end());
    text_ += delta.text;
    changed_.notify_all();
  }
  void finished(const request_summary& summary) override {
    std::lock_guard lock(mutex_);
    text_ += summary.text;
    summary_ = summary;
    ++num_ends_;
    changed_.notify_all();
  }

  bool wait_for_tokens(std::size_t count) {
    return wait([&] { return tokens_.size() >= count || summary_; });
  }
  /// The summary; a failure of the test when none came.
  request_summary wait_for_end() {
    EXPECT_TRUE(wait([&] { return summary_.has_value(); })) << "the request did not end";
    std::lock_guard lock(mutex_);
    return summary_.value_or(request_summary{});
  }
  std::vector<token_id> tokens() const {
    std::lock_guard lock(mutex_);
    return tokens_;
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }
  int num_ends() const {
    std::lock_guard lock(mutex_);
    return num_ends_;
  }

 private:
  template <class Predicate>
  bool wait(Predicate predicate) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds{30}, predicate);
  }

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<token_id> tokens_;
  std::string text_;
  std::optional<request_summary> summary_;
  int num_ends_ = 0;
};

struct live_options {
  runtime_options engine;
  host_device_options device;
  tiny_options model;

  live_options() {
    engine.num_device_blocks = 320;
    engine.host_tier_bytes = 64ULL << 20;
  }
};

inline tl::expected<std::unique_ptr<runtime>, error> start_live(const live_options& options = {}) {
  return runtime::start(options.engine, make_host_device(options.device), make_tiny_model(options.model),
                        make_byte_tokenizer());
}

inline generation_request greedy_request(std::string text, std::uint32_t max_tokens) {
  generation_request request;
  request.prompt = make_byte_tokenizer()->encode(text);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

/// Submits; the test fails when that is refused.
inline std::shared_ptr<waiting_client> submit_to(runtime& engine, generation_request request,
                                                 request_id* id = nullptr) {
  auto client = std::make_shared<waiting_client>();
  const auto accepted = engine.submit(std::move(request), client);
  EXPECT_TRUE(accepted) << (accepted ? "" : accepted.error().message);
  if (accepted && id != nullptr) *id = *accepted;
  return client;
}

inline reset_report reset_and_wait(runtime& engine, reset_options options) {
  std::promise<reset_report> done;
  engine.reset_prefix_cache(options, [&](const reset_report& report) { done.set_value(report); });
  auto answer = done.get_future();
  if (answer.wait_for(std::chrono::seconds{30}) == std::future_status::ready) return answer.get();
  ADD_FAILURE() << "the reset was not answered";
  std::abort();  // the callback refers to this frame
}

/// Calls a control command with `done` and waits for its report.
template <class Command>
control_report control_and_wait(Command command) {
  const auto done = std::make_shared<std::promise<control_report>>();
  auto answer = done->get_future();
  command([done](const control_report& report) { done->set_value(report); });
  if (answer.wait_for(std::chrono::seconds{30}) == std::future_status::ready) return answer.get();
  ADD_FAILURE() << "the command was not answered";
  return {control_outcome::failed, {}, "not answered"};
}

inline engine_snapshot snapshot_of(runtime& engine) {
  std::promise<engine_snapshot> done;
  engine.snapshot([&](const engine_snapshot& snapshot) { done.set_value(snapshot); });
  return done.get_future().get();
}

/// Waits until nothing runs and no transfer is in flight.
inline engine_snapshot wait_until_idle(runtime& engine) {
  for (int i = 0; i < 15'000; ++i) {
    auto snapshot = snapshot_of(engine);
    if (snapshot.is_idle) return snapshot;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  ADD_FAILURE() << "the engine does not become idle";
  return {};
}

}  // namespace sluice::testing
