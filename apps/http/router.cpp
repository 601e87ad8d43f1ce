// SPDX-License-Identifier: Apache-2.0
#include "http/router.hpp"

#include "http/api_error.hpp"

namespace sluice::http {

std::optional<response> router::refuse(const request& head) {
  if (match(head) == nullptr) return no_route(head);
  return std::nullopt;
}

void router::handle(std::shared_ptr<exchange> call) {
  const auto* entry = match(call->asked());
  if (entry == nullptr) return call->respond(no_route(call->asked()));
  try {
    run(*entry, call);
  } catch (const api_error& failure) {
    call->respond(to_response(failure));
  } catch (const std::exception& failure) {
    call->respond(to_response(internal_fault(failure.what())));
  }
}

response router::reject(int status, std::string_view message) {
  return to_response({status, std::string{message}, status == 413 ? "body_too_large" : "invalid_request"});
}

const route* router::match(const request& asked) const {
  for (const auto& entry : routes_) {
    const bool is_method = entry.method == asked.method || (entry.method == "GET" && asked.method == "HEAD");
    if (is_method && entry.path == asked.path) return &entry;
  }
  return nullptr;
}

response router::no_route(const request& asked) const {
  std::string allow;
  for (const auto& entry : routes_) {
    if (entry.path != asked.path) continue;
    allow += (allow.empty() ? "" : ", ") + entry.method + (entry.method == "GET" ? ", HEAD" : "");
  }
  if (allow.empty()) return to_response({404, "there is no endpoint " + asked.path, "not_found"});
  auto answer =
      to_response({405, asked.path + " does not take " + asked.method + ", allowed: " + allow, "method_not_allowed"});
  answer.headers.push_back({"Allow", allow});
  return answer;
}

void router::run(const route& entry, const exchange_ptr& call) {
  const auto params = query_params::parse(call->asked().query, entry.params, entry.repeatable_params);
  if (!entry.takes_body && !call->asked().body.empty()) {
    throw api_error{400, entry.path + " takes no body, got " + std::to_string(call->asked().body.size()) + " bytes",
                    "invalid_value"};
  }
  entry.run(call, params);
}

}  // namespace sluice::http
