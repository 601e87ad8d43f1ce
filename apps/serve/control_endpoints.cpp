// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "http/api_error.hpp"
#include "serve/control_json.hpp"
#include "serve/deferred_answer.hpp"
#include "serve/service.hpp"
#include "serve/state_json.hpp"

namespace sluice::serve {
namespace {

using http::exchange_ptr;
using http::query_params;
using std::chrono::milliseconds;

constexpr std::uint64_t most_wait_ms = 600'000;
constexpr std::uint64_t most_timeout_ms = 86'400'000;

pause_mode mode_of(const query_params& params) {
  const auto name = params.choice("mode", {"abort", "wait", "keep"});
  return name == "wait" ? pause_mode::wait : name == "keep" ? pause_mode::keep : pause_mode::abort;
}

void reset_prefix_cache(service& api, const exchange_ptr& call, const query_params& params) {
  reset_options options;
  options.reset_running_requests = params.flag("reset_running_requests", false);
  options.reset_external = params.flag("reset_external", false);
  options.wait = milliseconds{params.integer("wait_ms", 0, most_wait_ms, 0)};
  const auto answer = deferred_answer::start(api, call, options.wait);
  api.engine.reset_prefix_cache(
      options, [answer](const reset_report& report) { answer->complete([report] { return to_json(report); }); });
}

void reset_connector_cache(service& api, const exchange_ptr& call, const query_params&) {
  const auto answer = deferred_answer::start(api, call);
  api.engine.reset_prefix_cache({false, true, false, {}}, [answer](const reset_report& report) {
    answer->complete([success = report.success] { return http::json{{"success", success}}; });
  });
}

/// Answers with what `make_body` makes of the report.
auto answering(service& api, const exchange_ptr& call, milliseconds own_wait,
               http::json (*make_body)(const service&, const control_report&)) {
  return [&api, make_body, answer = deferred_answer::start(api, call, own_wait)](const control_report& report) {
    answer->complete([&api, make_body, report] { return make_body(api, report); });
  };
}

void pause(service& api, const exchange_ptr& call, const query_params& params) {
  pause_options options;
  options.mode = mode_of(params);
  options.clear_cache = params.flag("clear_cache", true);
  options.clear_tiers = params.flag("clear_connector_cache", true);
  const auto fallback = static_cast<std::uint64_t>(options.timeout.count());
  options.timeout = milliseconds{params.integer("timeout_ms", 0, most_timeout_ms, fallback)};
  api.engine.pause(options, answering(api, call, options.timeout, pause_body));
}

void resume(service& api, const exchange_ptr& call, const query_params&) {
  api.engine.resume(answering(api, call, {}, resume_body));
}

void sleep(service& api, const exchange_ptr& call, const query_params& params) {
  sleep_options options;
  options.level = static_cast<std::uint32_t>(params.integer("level", 1, 2, 1));
  options.mode = mode_of(params);
  options.clear_tiers = params.flag("clear_connector_cache", true);
  api.engine.sleep(options, answering(api, call, options.timeout, sleep_body));
}

void wake_up(service& api, const exchange_ptr& call, const query_params& params) {
  const auto tags = params.choices("tags", {"weights", "kv_cache"});
  const auto names = [&](const char* tag) {
    return tags.empty() || std::find(tags.begin(), tags.end(), tag) != tags.end();
  };
  api.engine.wake({names("weights"), names("kv_cache")}, answering(api, call, {}, wake_body));
}

void tell(const exchange_ptr& call, const char* name, bool value) {
  http::response answer;
  answer.body = http::dump({{name, value}});
  call->respond(std::move(answer));
}

void tell_paused(service& api, const exchange_ptr& call, const query_params&) {
  tell(call, "is_paused", api.engine.is_paused());
}

void tell_sleeping(service& api, const exchange_ptr& call, const query_params&) {
  tell(call, "is_sleeping", api.engine.is_sleeping());
}

}  // namespace

void add_control_endpoints(http::router& routes, service& api) {
  using function = void (*)(service&, const exchange_ptr&, const query_params&);
  const auto add = [&](std::string method, std::string path, std::vector<std::string> params, function run,
                       std::vector<std::string> repeatable = {}) {
    auto call = [&api, run](const exchange_ptr& asked, const query_params& given) { run(api, asked, given); };
    routes.add({std::move(method), std::move(path), std::move(params), false, std::move(call), std::move(repeatable)});
  };
  add("POST", "/reset_prefix_cache", {"reset_running_requests", "reset_external", "wait_ms"}, reset_prefix_cache);
  add("POST", "/reset_connector_cache", {}, reset_connector_cache);
  add("POST", "/pause", {"mode", "clear_cache", "clear_connector_cache", "timeout_ms"}, pause);
  add("POST", "/resume", {}, resume);
  add("GET", "/is_paused", {}, tell_paused);
  add("POST", "/sleep", {"level", "mode", "clear_connector_cache"}, sleep);
  add("POST", "/wake_up", {"tags"}, wake_up, {"tags"});
  add("GET", "/is_sleeping", {}, tell_sleeping);
}

}  // namespace sluice::serve
