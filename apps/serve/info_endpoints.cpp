// SPDX-License-Identifier: Apache-2.0
#include <sluice/version.hpp>

#include "http/api_error.hpp"
#include "serve/service.hpp"

namespace sluice::serve {
namespace {

void respond(const http::exchange_ptr& call, const http::json& body) {
  http::response answer;
  answer.body = http::dump(body);
  call->respond(std::move(answer));
}

void list_models(const service& api, const http::exchange_ptr& call) {
  const http::json model{{"id", api.model_name},
                         {"object", "model"},
                         {"created", api.started},
                         {"owned_by", "sluice"},
                         {"root", api.engine.info().model.name},
                         {"parent", nullptr},
                         {"max_model_len", api.engine.info().max_model_len}};
  respond(call, {{"object", "list"}, {"data", http::json::array({model})}});
}

void report_health(const service& api, const http::exchange_ptr& call) {
  switch (api.engine.state()) {
    case health::serving: return respond(call, {{"status", "serving"}});
    case health::draining: throw http::api_error{503, "draining: the server is shutting down", "draining"};
    case health::failed: {
      const auto failure = api.engine.failure();
      throw http::api_error{503, "failed: " + std::string{to_string(failure.code)} + ": " + failure.message, "failed"};
    }
  }
}

// A paused engine is alive, but a new request would wait.
void report_readiness(const service& api, const http::exchange_ptr& call) {
  if (api.engine.state() == health::serving) {
    if (api.engine.is_sleeping()) throw http::api_error{503, "sleeping: POST /wake_up ends that", "sleeping"};
    if (api.engine.is_paused()) throw http::api_error{503, "paused: POST /resume ends that", "paused"};
  }
  report_health(api, call);
}

void report_metrics(const service& api, const http::exchange_ptr& call) {
  http::response answer;
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  answer.body = api.engine.metrics();
  call->respond(std::move(answer));
}

}  // namespace

void add_info_endpoints(http::router& routes, service& api) {
  const auto add = [&](std::string path, void (*run)(const service&, const http::exchange_ptr&)) {
    routes.add(
        {"GET", std::move(path), {}, false, [&api, run](const http::exchange_ptr& call, const http::query_params&) {
           run(api, call);
         }});
  };
  add("/v1/models", list_models);
  add("/health", report_health);
  add("/ready", report_readiness);
  add("/version", [](const service&, const http::exchange_ptr& call) { respond(call, {{"version", SLUICE_VERSION}}); });
  add("/metrics", report_metrics);
}

}  // namespace sluice::serve
