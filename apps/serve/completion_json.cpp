// SPDX-License-Identifier: Apache-2.0
#include "serve/completion_json.hpp"

namespace sluice::serve {
namespace {

http::json envelope(const completion_identity& identity) {
  return {{"id", identity.id},
          {"object", "text_completion"},
          {"created", identity.created},
          {"model", identity.model},
          {"system_fingerprint", identity.system_fingerprint},
          {"choices", http::json::array()}};
}

}  // namespace

std::string_view to_string(finish_reason reason) {
  switch (reason) {
    case finish_reason::stop: return "stop";
    case finish_reason::length: return "length";
    case finish_reason::abort: return "abort";
    case finish_reason::error: return "error";
  }
  return "error";
}

http::json to_json(const request_usage& usage) {
  const auto cached = usage.num_device_cached_tokens + usage.num_host_cached_tokens;
  return {{"prompt_tokens", usage.num_prompt_tokens},
          {"completion_tokens", usage.num_output_tokens},
          {"total_tokens", usage.num_prompt_tokens + usage.num_output_tokens},
          {"prompt_tokens_details",
           {{"cached_tokens", cached},
            {"tiers", {{"device", usage.num_device_cached_tokens}, {"host", usage.num_host_cached_tokens}}}}}};
}

http::json completion_body(const completion_identity& identity, const completion_choice& choice) {
  http::json entry{{"index", 0}, {"text", choice.text}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  if (choice.finish) entry["finish_reason"] = to_string(*choice.finish);
  if (choice.token_ids != nullptr) entry["token_ids"] = *choice.token_ids;
  auto body = envelope(identity);
  body["choices"].push_back(std::move(entry));
  return body;
}

http::json usage_chunk(const completion_identity& identity, const request_usage& usage) {
  auto body = envelope(identity);
  body["usage"] = to_json(usage);
  return body;
}

std::string sse_event(const http::json& data) { return "data: " + http::dump(data) + "\n\n"; }

}  // namespace sluice::serve
