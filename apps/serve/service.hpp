// SPDX-License-Identifier: Apache-2.0
//
// The API over one runtime: what the endpoint groups share. Loop thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include <sluice/runtime/runtime.hpp>

#include "http/loop.hpp"
#include "http/router.hpp"
#include "serve/output_queue.hpp"

namespace sluice::serve {

struct service_options {
  std::string served_model_name;                      ///< empty: the model's own name
  std::uint64_t seed = 0;                             ///< base of the seeds of requests that give none
  std::chrono::milliseconds control_timeout{30'000};  ///< an engine that does not answer by then is a 503
};

/// Accepted requests that have not had their terminal event. The loop thread's own record for draining.
class active_requests {
 public:
  explicit active_requests(runtime& engine) : engine_{engine} {}

  void add(request_id id);
  void remove(request_id id);
  std::size_t size() const { return ids_.size(); }

  /// Asks the runtime to end all of them.
  void abort_all();

  /// Calls `call` once, as soon as there is none; at once when that is so already.
  void when_none(std::function<void()> call);

 private:
  runtime& engine_;
  std::unordered_set<request_id> ids_;
  std::function<void()> on_none_;
};

/// Lives until the runtime has stopped; `loop` and `engine` outlive it.
struct service {
  service(http::loop& runs_on, runtime& serves, std::shared_ptr<const tokenizer> tokens, service_options chosen);

  /// The seed of the next request that gives none: differs per request, repeats per run.
  std::uint64_t next_seed();

  http::loop& loop;
  runtime& engine;
  std::shared_ptr<const tokenizer> text;
  service_options options;
  std::string model_name;
  std::string system_fingerprint;  ///< of what shapes output: version, model, dtype, seed
  std::int64_t started = 0;        ///< seconds since 1970
  std::shared_ptr<output_queue> outputs;
  active_requests active;

 private:
  std::uint64_t num_seeds_ = 0;
};

// The endpoint groups, a file each. `api` outlives `routes`' use.
void add_completion_endpoints(http::router& routes, service& api);  ///< POST /v1/completions
void add_info_endpoints(http::router& routes, service& api);        ///< models, health, ready, version, metrics
void add_control_endpoints(http::router& routes, service& api);     ///< resets, pause, sleep and their opposites
void add_debug_endpoints(http::router& routes, service& api);       ///< GET /debug/state

/// All of the above.
void add_endpoints(http::router& routes, service& api);

}  // namespace sluice::serve
