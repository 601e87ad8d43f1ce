// SPDX-License-Identifier: Apache-2.0
#include "http/api_error.hpp"

#include <spdlog/spdlog.h>

#include "http/unique_id.hpp"

namespace sluice::http {
namespace {

// An answer does not repeat the whole of what a client sent.
constexpr std::size_t max_message_bytes = 1024;
constexpr std::size_t max_param_bytes = 256;

std::string_view type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 500: return "internal_server_error";
    case 503: return "service_unavailable_error";
    default: return "invalid_request_error";
  }
}

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

}  // namespace

api_error invalid_value(const std::string& param, const std::string& given, const std::string& allowed) {
  return {400, "invalid " + param + ": got " + given + ", allowed: " + allowed, "invalid_value", param};
}

api_error internal_fault(std::string_view cause) {
  const auto id = unique_id("fault-");
  spdlog::error("internal fault id={} cause={}", id, quote(cause));
  return {500, "internal fault " + id + ": " + std::string{cause}, "internal_error"};
}

json to_json(const api_error& failure) {
  return {{"error",
           {{"message", clip(failure.message, max_message_bytes)},
            {"type", type_of(failure.status)},
            {"param", text_or_null(clip(failure.param, max_param_bytes))},
            {"code", text_or_null(failure.code)}}}};
}

response to_response(const api_error& failure) {
  response answer;
  answer.status = failure.status;
  answer.body = dump(to_json(failure));
  if (failure.status == 503 || failure.status == 429) answer.headers.push_back({"Retry-After", "1"});
  return answer;
}

}  // namespace sluice::http
