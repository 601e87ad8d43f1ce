// SPDX-License-Identifier: Apache-2.0
#include "serve/deferred_answer.hpp"
#include "serve/service.hpp"
#include "serve/state_json.hpp"

namespace sluice::serve {
namespace {

void show_state(service& api, const http::exchange_ptr& call) {
  const auto answer = deferred_answer::start(api, call);
  api.engine.snapshot([answer](const engine_snapshot& state) { answer->complete([state] { return to_json(state); }); });
}

}  // namespace

void add_debug_endpoints(http::router& routes, service& api) {
  routes.add({"GET", "/debug/state", {}, false, [&api](const http::exchange_ptr& call, const http::query_params&) {
                show_state(api, call);
              }});
}

}  // namespace sluice::serve
