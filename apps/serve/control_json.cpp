// SPDX-License-Identifier: Apache-2.0
#include "serve/control_json.hpp"

#include <string>

#include "http/api_error.hpp"
#include "serve/state_json.hpp"

namespace sluice::serve {
namespace {

[[noreturn]] void throw_failed(const service& api, const std::string& message) {
  switch (api.engine.state()) {
    case health::serving: throw http::internal_fault(message);
    case health::draining: throw http::api_error{503, message, "shutting_down"};
    case health::failed: throw http::api_error{503, message, "engine_failed"};
  }
  throw http::internal_fault(message);
}

[[noreturn]] void throw_cancelled(const std::string& what) {
  throw http::api_error{409, "the " + what + " was cancelled by a later command", "cancelled"};
}

std::string why_kept(const cache_reset_report& cache) {
  auto text = cache.cache == "device" ? std::string{"the device cache"} : "the connector cache " + cache.cache;
  if (cache.is_unsupported) return text + " cannot be reset";
  text += " could not be reset";
  for (std::size_t i = 0; i < cache.held_by_loads.size(); ++i)
    text += (i == 0 ? ", held by loads " : ", ") + std::to_string(cache.held_by_loads[i].value);
  if (cache.held_by_running_requests > 0)
    text += ", held by " + std::to_string(cache.held_by_running_requests) + " running requests";
  return text;
}

[[noreturn]] void throw_refused(const control_report& report) {
  std::string reasons;
  for (const auto& cache : report.caches)
    if (!cache.reset) reasons += (reasons.empty() ? "" : "; ") + why_kept(cache);
  if (reasons.empty()) reasons = report.message.empty() ? "a cache could not be reset" : report.message;
  throw http::api_error{409, "sleep is refused: " + reasons + "; no memory was given back", "cache_not_reset"};
}

http::json with_caches(const char* status, const control_report& report) {
  return {{"status", status}, {"caches", to_json(report.caches)}};
}

http::json plain_body(const service& api, const char* what, const char* status, const control_report& report) {
  switch (report.outcome) {
    case control_outcome::done: return {{"status", status}};
    case control_outcome::timed_out: return with_caches("pausing", report);
    case control_outcome::refused:
      if (!report.caches.empty()) return with_caches(status, report);
      throw http::api_error{409, std::string{"the "} + what + " is refused: " + report.message, "refused"};
    case control_outcome::cancelled: throw_cancelled(what);
    case control_outcome::failed: break;
  }
  throw_failed(api, report.message);
}

}  // namespace

http::json pause_body(const service& api, const control_report& report) {
  return plain_body(api, "pause", "paused", report);
}

http::json resume_body(const service& api, const control_report& report) {
  return plain_body(api, "resume", "resumed", report);
}

http::json sleep_body(const service& api, const control_report& report) {
  if (report.outcome == control_outcome::refused) throw_refused(report);
  return plain_body(api, "sleep", "sleeping", report);
}

http::json wake_body(const service& api, const control_report& report) {
  return plain_body(api, "wake-up", api.engine.is_sleeping() ? "sleeping" : "awake", report);
}

}  // namespace sluice::serve
