// SPDX-License-Identifier: Apache-2.0
#include "serve/deferred_answer.hpp"
#include "serve/service.hpp"
#include "serve/state_json.hpp"

namespace sluice::serve {
namespace {

void reset_prefix_cache(service& api, const http::exchange_ptr& call, const http::query_params& params) {
  reset_options options;
  options.reset_running_requests = params.flag("reset_running_requests", false);
  options.reset_external = params.flag("reset_external", false);
  const auto answer = deferred_answer::start(api, call);
  api.engine.reset_prefix_cache(
      options, [answer](const reset_report& report) { answer->complete([report] { return to_json(report); }); });
}

}  // namespace

void add_control_endpoints(http::router& routes, service& api) {
  routes.add({"POST",
              "/reset_prefix_cache",
              {"reset_running_requests", "reset_external"},
              false,
              [&api](const http::exchange_ptr& call, const http::query_params& params) {
                reset_prefix_cache(api, call, params);
              }});
}

}  // namespace sluice::serve
