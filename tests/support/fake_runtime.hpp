// SPDX-License-Identifier: Apache-2.0
//
// A runtime without an engine: records what is submitted and aborted, and says what the test tells it to say.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sluice/runtime/runtime.hpp>

namespace sluice::testing {

/// One token per byte.
class letter_tokenizer : public tokenizer {
 public:
  std::vector<token_id> encode(std::string_view text) const override {
    std::vector<token_id> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string_view bytes(token_id) const override { return {}; }
};

class fake_runtime : public runtime {
 public:
  struct submission {
    request_id id;
    generation_request request;
    std::shared_ptr<request_sink> sink;

    void say(const std::string& text, std::vector<token_id> tokens = {}) const {
      sink->delta({std::move(tokens), text});
    }
    void finish(finish_reason reason, request_usage usage = {}, error failure = {}, std::string text = {}) const {
      sink->finished({reason, std::move(failure), std::move(text), usage});
    }
  };

  static constexpr std::chrono::seconds patience{10};

  fake_runtime() {
    facts.model = {"tiny", "f32", 128, 256, {0}};
    facts.device_name = "host";
    facts.block_size = 16;
    facts.max_model_len = 128;
  }

  // What the test sets before use.
  runtime_info facts;
  std::function<std::optional<error>(const generation_request&)> refuse;  ///< an error for a submission
  std::function<void(const submission&)> on_submit;                       ///< runs on the server's thread
  bool finishes_aborted = true;                                           ///< an abort is answered by `finished`
  reset_report report;
  control_report control;           ///< how the next commands end; a state follows only from outcome done
  engine_snapshot state_now;
  bool answers_control = true;
  std::optional<error> stop_error;

  /// The next submission, in order; waits, bounded.
  submission next_submission() {
    std::unique_lock lock{mutex_};
    const bool is_there = changed_.wait_for(lock, patience, [this] { return submissions_.size() > num_taken_; });
    if (!is_there) throw std::runtime_error{"no request was submitted"};
    return submissions_[num_taken_++];
  }

  bool wait_for_abort(request_id id) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, patience, [&] { return std::count(aborted_.begin(), aborted_.end(), id) > 0; });
  }

  bool wait_for_drain() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, patience, [&] { return health_ == health::draining; });
  }

  std::size_t num_submissions() {
    const std::lock_guard lock{mutex_};
    return submissions_.size();
  }

  void fail(error why) {
    const std::lock_guard lock{mutex_};
    health_ = health::failed;
    failure_ = std::move(why);
  }

  reset_options last_reset() {
    const std::lock_guard lock{mutex_};
    return last_reset_;
  }

  /// Commands in the order of their calls, in words.
  std::vector<std::string> commands() {
    const std::lock_guard lock{mutex_};
    return commands_;
  }

  const runtime_info& info() const override { return facts; }

  tl::expected<request_id, error> submit(generation_request request, std::shared_ptr<request_sink> sink) override {
    if (refuse) {
      if (auto failure = refuse(request)) return tl::unexpected{*failure};
    }
    submission entry;
    {
      const std::lock_guard lock{mutex_};
      entry = {request_id{submissions_.size() + 1}, std::move(request), std::move(sink)};
      submissions_.push_back(entry);
    }
    changed_.notify_all();
    if (on_submit) on_submit(entry);
    return entry.id;
  }

  void abort(request_id id) override {
    std::shared_ptr<request_sink> sink;
    {
      const std::lock_guard lock{mutex_};
      if (std::count(aborted_.begin(), aborted_.end(), id) == 0) sink = submissions_.at(id.value - 1).sink;
      aborted_.push_back(id);
    }
    changed_.notify_all();
    if (sink && finishes_aborted) sink->finished({finish_reason::abort, {}, {}, {}});
  }

  void reset_prefix_cache(reset_options options, std::function<void(const reset_report&)> done) override {
    {
      const std::lock_guard lock{mutex_};
      last_reset_ = options;
    }
    if (answers_control) done(report);
  }

  void abort_all() override {
    for (std::size_t id = 1; id <= num_submissions(); ++id) abort(request_id{id});
  }

  /// In mode abort it ends what was submitted and not aborted yet.
  void pause(pause_options options, std::function<void(const control_report&)> done) override {
    if (options.mode == pause_mode::abort) abort_all();
    command("pause " + name(options.mode) + flag(" device", options.clear_cache) + flag(" tiers", options.clear_tiers) +
                " " + std::to_string(options.timeout.count()),
            control_state::paused, done);
  }

  void resume(std::function<void(const control_report&)> done) override {
    command("resume", control_state::running, done);
  }

  void sleep(sleep_options options, std::function<void(const control_report&)> done) override {
    command("sleep " + std::to_string(options.level) + " " + name(options.mode) + flag(" tiers", options.clear_tiers),
            control_state::sleeping, done);
  }

  void wake(wake_options options, std::function<void(const control_report&)> done) override {
    const bool is_whole = options.weights && options.kv_cache;
    command("wake" + flag(" weights", options.weights) + flag(" kv_cache", options.kv_cache),
            is_whole ? control_state::running : control_state::sleeping, done);
  }

  bool is_paused() const override { return control_now() != control_state::running; }
  bool is_sleeping() const override { return control_now() == control_state::sleeping; }

  void snapshot(std::function<void(const engine_snapshot&)> done) override {
    if (answers_control) done(state_now);
  }

  std::string metrics() const override { return "# TYPE sluice_steps_total counter\nsluice_steps_total 7\n"; }

  health state() const override {
    const std::lock_guard lock{mutex_};
    return health_;
  }

  error failure() const override {
    const std::lock_guard lock{mutex_};
    return failure_;
  }

  tl::expected<void, error> stop(std::chrono::milliseconds) override {
    if (stop_error) return tl::unexpected{*stop_error};
    return {};
  }

  void begin_drain() override {
    {
      const std::lock_guard lock{mutex_};
      health_ = health::draining;
    }
    changed_.notify_all();
  }

 private:
  static std::string name(pause_mode mode) {
    switch (mode) {
      case pause_mode::abort: return "abort";
      case pause_mode::wait: return "wait";
      case pause_mode::keep: return "keep";
    }
    return "?";
  }
  static std::string flag(const std::string& text, bool is_set) { return is_set ? text : ""; }

  void command(const std::string& words, control_state leads_to, const std::function<void(const control_report&)>& done) {
    {
      const std::lock_guard lock{mutex_};
      commands_.push_back(words);
      if (control.outcome == control_outcome::done) control_now_ = leads_to;
    }
    if (answers_control) done(control);
  }

  control_state control_now() const {
    const std::lock_guard lock{mutex_};
    return control_now_;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<submission> submissions_;
  std::size_t num_taken_ = 0;
  std::vector<request_id> aborted_;
  reset_options last_reset_;
  std::vector<std::string> commands_;
  control_state control_now_ = control_state::running;
  health health_ = health::serving;
  error failure_;
};

}  // namespace sluice::testing
