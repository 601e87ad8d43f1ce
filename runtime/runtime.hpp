// SPDX-License-Identifier: Apache-2.0
//
// The embeddable system. Free of CAF; everything in `apps/` goes through this header.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/request/request_sink.hpp>
#include <sluice/actors/request/tokenizer.hpp>
#include <sluice/gpu/device.hpp>
#include <sluice/messages/types.hpp>
#include <sluice/runtime/options.hpp>

namespace sluice::inline v0 {

/// A request as a client states it.
struct generation_request {
  std::vector<token_id> prompt;        ///< 1 to max_model_len - 1 tokens, each below the model's vocab_size
  std::uint32_t max_tokens = 16;       ///< 1 or more; prompt and output together at most max_model_len
  sampling_params sampling;            ///< temperature 0 to 2
  bool ignore_eos = false;
  std::vector<std::string> stop;       ///< up to 16 non-empty strings; the text ends before the first match
  std::string cache_salt;              ///< requests with different salts never share KV
  std::string label;                   ///< the client's own id, for logs only
  std::int32_t priority = 0;           ///< lower goes first; of the policy `priority` only
  std::optional<std::uint32_t> max_offload_tokens;  ///< leading tokens that may be stored in a tier; none: all
  std::optional<std::uint32_t> max_load_tokens;     ///< tokens that may be loaded from a tier; none: all
  bool read_prefix_cache = true;       ///< false: everything is computed, and cached all the same
};

struct reset_options {
  bool reset_running_requests = false;  ///< preempt running requests; they resume by themselves
  bool reset_external = false;          ///< reset every tier too
  bool reset_device = true;
  std::chrono::milliseconds wait{0};    ///< for loads that hold the device's blocks, at most 24 h; 0: answer at once
};

struct pause_options {
  pause_mode mode = pause_mode::abort;       ///< what becomes of requests
  bool clear_cache = true;                   ///< the device's
  bool clear_tiers = true;
  std::chrono::milliseconds timeout{60'000};  ///< for everything to come to rest, 0 to 24 h
};

struct sleep_options {
  std::uint32_t level = 1;                   ///< 1: the KV cache's memory, 2: that of the model's weights too
  pause_mode mode = pause_mode::abort;
  bool clear_tiers = true;
  std::chrono::milliseconds timeout{60'000};  ///< 0 to 24 h
};

struct wake_options {
  bool weights = true;
  bool kv_cache = true;
};

enum class health : std::uint8_t { serving, draining, failed };

/// Facts fixed at start.
struct runtime_info {
  model_info model;
  std::string device_name;
  std::uint32_t block_size = 0;
  std::uint32_t max_model_len = 0;      ///< the limit that is advertised, checked and used
  std::uint32_t num_device_blocks = 0;  ///< the null block included
  std::uint32_t num_host_slots = 0;
  std::uint64_t bytes_per_block = 0;
};

/// Owns the actor system, the device, the model and all cache memory. All member functions may be called from
/// any thread except from inside a sink's or callback's call; none waits for a step unless it says so.
///
/// A callback `done` is called once: on an actor thread; but for an option out of range, and once `stop` has been
/// called, on the caller's, before the function returns.
class runtime {
 public:
  /// Allocates memory, spawns actors and returns once requests may be submitted.
  /// Errors: invalid_argument (an option out of range; says which, what was given, what is allowed),
  /// insufficient_memory, device_failed.
  static tl::expected<std::unique_ptr<runtime>, error> start(runtime_options options,
                                                             std::unique_ptr<gpu::device> device,
                                                             std::unique_ptr<model_executor> model,
                                                             std::shared_ptr<const tokenizer> tokenizer);

  /// Stops with a deadline of zero if `stop` was not called.
  virtual ~runtime() = default;

  virtual const runtime_info& info() const = 0;

  /// Accepts a request; its output goes to `sink`, which is kept until after `finished`.
  /// Errors: prompt_empty, prompt_too_long, invalid_argument, queue_full, shutting_down, engine_failed, and asleep
  /// with the option `refuse_while_asleep`. On an error the sink is never called.
  virtual tl::expected<request_id, error> submit(generation_request request, std::shared_ptr<request_sink> sink) = 0;

  /// Ends a request with reason abort; unknown or ended ids are ignored. Returns at once.
  virtual void abort(request_id id) = 0;

  /// The same for every request that has not ended.
  virtual void abort_all() = 0;

  /// Resets the prefix cache between two steps and calls `done` with the verdict.
  /// Never an error: what cannot be reset now is reported as refused. When the engine has failed `done` gets
  /// `success` false and no caches.
  virtual void reset_prefix_cache(reset_options options, std::function<void(const reset_report&)> done) = 0;

  // Control. Each calls `done` with how it ended; `failed`, with the reason in `message`, also for an option out of
  // range and for an engine that has failed or was stopped.

  /// Stops admitting requests at once and calls `done` when everything has come to rest and the named caches are
  /// cleared, or after the timeout. Requests are still accepted; they wait. Harmless while paused.
  virtual void pause(pause_options options, std::function<void(const control_report&)> done) = 0;

  /// Goes on; cancels a pause or sleep that has not come to rest. Harmless while running.
  virtual void resume(std::function<void(const control_report&)> done) = 0;

  /// Pauses and gives device memory back. When a cache cannot be reset nothing is given back (refused).
  virtual void sleep(sleep_options options, std::function<void(const control_report&)> done) = 0;

  /// Takes memory back; the engine goes on when it has all of it.
  virtual void wake(wake_options options, std::function<void(const control_report&)> done) = 0;

  /// Nobody is admitted: paused, about to be, or asleep.
  virtual bool is_paused() const = 0;

  /// Memory is given back.
  virtual bool is_sleeping() const = 0;

  /// Calls `done` with the state between two messages of the scheduler; with an empty one when the engine has failed.
  virtual void snapshot(std::function<void(const engine_snapshot&)> done) = 0;

  /// Prometheus text exposition. Reads counters only; never blocks a step.
  virtual std::string metrics() const = 0;

  virtual health state() const = 0;

  /// Why `state()` is failed; code none otherwise.
  virtual error failure() const = 0;

  /// Refuses new requests, lets accepted ones finish until `deadline` has passed, aborts the rest, waits for
  /// transfers to settle (`deadline` again, two seconds at least) and frees everything. Blocks the caller. Every
  /// accepted request has got its terminal event when it returns. Idempotent; questions asked after it are answered
  /// at once, with nothing.
  /// Errors: transfers_unsettled (names the transfers, or says that a step had not ended), engine_failed. After an
  /// error memory and streams that are still in use stay allocated.
  virtual tl::expected<void, error> stop(std::chrono::milliseconds deadline) = 0;

  /// The same as `stop`, without waiting: new requests are refused, accepted ones go on.
  virtual void begin_drain() = 0;
};

}  // namespace sluice::inline v0
