// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "http/api_error.hpp"
#include "serve/completion_request.hpp"
#include "serve/engine_error.hpp"
#include "serve/generation.hpp"
#include "serve/service.hpp"

namespace sluice::serve {
namespace {

constexpr std::uint32_t default_max_tokens = 16;

void check_model(const service& api, const std::string& model) {
  if (model.empty() || model == api.model_name) return;
  throw http::api_error{404,
                        "model " + http::quote(model) + " is not served here, allowed: " + http::quote(api.model_name),
                        "model_not_found", "model"};
}

// The header labels a request like the field request_id, so the same limit holds.
void check_label(std::string_view label) {
  if (label.size() <= max_label_bytes) return;
  throw http::invalid_value("X-Request-Id", std::to_string(label.size()) + " bytes",
                            "at most " + std::to_string(max_label_bytes) + " bytes");
}

std::vector<token_id> prompt_tokens(const service& api, completion_request& asked) {
  if (const auto* text = std::get_if<std::string>(&asked.prompt)) return api.text->encode(*text);
  auto tokens = std::get<std::vector<token_id>>(std::move(asked.prompt));
  const auto vocab_size = static_cast<token_id>(api.engine.info().model.vocab_size);
  const auto bad = std::find_if(tokens.begin(), tokens.end(), [vocab_size](token_id id) { return id >= vocab_size; });
  if (bad != tokens.end()) {
    throw http::invalid_value("prompt[" + std::to_string(bad - tokens.begin()) + "]", std::to_string(*bad),
                              "token ids from 0 to " + std::to_string(vocab_size - 1));
  }
  return tokens;
}

// How many tokens to generate; throws when prompt and output do not fit the context together.
std::uint32_t output_limit(const service& api, const completion_request& asked, std::size_t num_prompt_tokens) {
  const std::size_t limit = api.engine.info().max_model_len;
  const auto wanted = asked.max_tokens.value_or(1);
  if (num_prompt_tokens + wanted > limit) {
    const auto least =
        asked.max_tokens ? "max_tokens is " + std::to_string(wanted) : std::string{"1 is to be generated"};
    throw http::api_error{400,
                          "the prompt has " + std::to_string(num_prompt_tokens) + " tokens and " + least +
                              ", allowed: together at most " + std::to_string(limit) +
                              " tokens, the context length of this model",
                          "context_length_exceeded", num_prompt_tokens >= limit ? "prompt" : "max_tokens"};
  }
  const auto room = static_cast<std::uint32_t>(limit - num_prompt_tokens);
  return asked.max_tokens.value_or(std::min(default_max_tokens, room));
}

generation_request to_generation(service& api, completion_request& asked) {
  check_model(api, asked.model);
  generation_request request;
  request.prompt = prompt_tokens(api, asked);
  request.max_tokens = output_limit(api, asked, request.prompt.size());
  request.sampling.temperature = asked.temperature;
  request.sampling.seed = asked.seed ? static_cast<std::uint64_t>(*asked.seed) : api.next_seed();
  request.ignore_eos = asked.ignore_eos;
  request.stop = std::move(asked.stop);
  request.cache_salt = std::move(asked.cache_salt);
  request.priority = asked.priority;
  request.max_offload_tokens = asked.max_offload_tokens;
  request.max_load_tokens = asked.max_load_tokens;
  return request;
}

void complete(service& api, const http::exchange_ptr& call) {
  if (api.engine.state() == health::draining) {
    throw http::api_error{503, "the server is shutting down", "shutting_down"};
  }
  check_label(call->asked().find("X-Request-Id"));
  auto asked = decode_completion_request(call->asked().body);
  auto request = to_generation(api, asked);
  const auto sink = std::make_shared<generation>(api, call, asked);
  request.label = sink->label();
  const auto id = api.engine.submit(std::move(request), sink);
  if (!id) throw to_api_error(id.error());
  sink->begin(*id);
}

}  // namespace

void add_completion_endpoints(http::router& routes, service& api) {
  routes.add({"POST", "/v1/completions", {}, true, [&api](const http::exchange_ptr& call, const http::query_params&) {
                complete(api, call);
              }});
}

}  // namespace sluice::serve
