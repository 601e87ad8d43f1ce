// SPDX-License-Identifier: Apache-2.0
#include "serve/service.hpp"

#include <utility>

#include <sluice/version.hpp>

namespace sluice::serve {

void active_requests::add(request_id id) { ids_.insert(id); }

void active_requests::remove(request_id id) {
  ids_.erase(id);
  if (!ids_.empty()) return;
  if (const auto call = std::exchange(on_none_, nullptr)) call();
}

void active_requests::abort_all() {
  for (const auto id : ids_) engine_.abort(id);
}

void active_requests::when_none(std::function<void()> call) {
  if (ids_.empty()) return call();
  on_none_ = std::move(call);
}

service::service(http::loop& runs_on, runtime& serves, std::shared_ptr<const tokenizer> tokens, service_options chosen)
    : loop{runs_on},
      engine{serves},
      text{std::move(tokens)},
      options{std::move(chosen)},
      outputs{std::make_shared<output_queue>(runs_on)},
      active{serves} {
  const auto& model = engine.info().model;
  model_name = options.served_model_name.empty() ? model.name : options.served_model_name;
  system_fingerprint =
      "sluice-" SLUICE_VERSION "-" + model.name + "-" + model.dtype + "-" + std::to_string(options.seed);
  started =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// SplitMix64: neighbouring counters give unrelated seeds.
std::uint64_t service::next_seed() {
  auto word = options.seed + ++num_seeds_ * 0x9e3779b97f4a7c15ULL;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

void add_endpoints(http::router& routes, service& api) {
  add_completion_endpoints(routes, api);
  add_info_endpoints(routes, api);
  add_control_endpoints(routes, api);
  add_debug_endpoints(routes, api);
}

}  // namespace sluice::serve
