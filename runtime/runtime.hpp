// SPDX-License-Identifier: Apache-2.0
//
// The embeddable system. Free of CAF; everything in `apps/` goes through this header.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
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
  std::string cache_salt;
  std::string label;                   ///< the client's own id, for logs only
};

struct reset_options {
  bool reset_running_requests = false;  ///< preempt running requests; they resume by themselves
  bool reset_external = false;          ///< reset every tier too
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
  /// Errors: prompt_empty, prompt_too_long, invalid_argument, queue_full, shutting_down, engine_failed. On an
  /// error the sink is never called.
  virtual tl::expected<request_id, error> submit(generation_request request, std::shared_ptr<request_sink> sink) = 0;

  /// Ends a request with reason abort; unknown or ended ids are ignored. Returns at once.
  virtual void abort(request_id id) = 0;

  /// Resets the prefix cache between two steps and calls `done` once, on an actor thread, with the verdict.
  /// Never an error: what cannot be reset now is reported as refused. When the engine has failed `done` gets
  /// `success` false and no caches.
  virtual void reset_prefix_cache(reset_options options, std::function<void(const reset_report&)> done) = 0;

  /// Calls `done` once, on an actor thread, with the state between two messages of the scheduler.
  virtual void snapshot(std::function<void(const engine_snapshot&)> done) = 0;

  /// Prometheus text exposition. Reads counters only; never blocks a step.
  virtual std::string metrics() const = 0;

  virtual health state() const = 0;

  /// Why `state()` is failed; code none otherwise.
  virtual error failure() const = 0;

  /// Refuses new requests, lets accepted ones finish until `deadline` has passed, aborts the rest, waits for
  /// transfers to settle (`deadline` again, two seconds at least) and frees everything. Blocks the caller.
  /// Idempotent; questions asked after it are answered at once, with nothing.
  /// Errors: transfers_unsettled (names them; their memory and streams stay allocated), engine_failed.
  virtual tl::expected<void, error> stop(std::chrono::milliseconds deadline) = 0;

  /// The same as `stop`, without waiting: new requests are refused, accepted ones go on.
  virtual void begin_drain() = 0;
};

}  // namespace sluice::inline v0
