// SPDX-License-Identifier: Apache-2.0
#include "serve/completion_request.hpp"

#include <array>
#include <limits>

#include "http/api_error.hpp"
#include "http/json.hpp"
#include "serve/field_readers.hpp"

namespace sluice::serve {
namespace {

using http::json;

constexpr std::size_t max_stop_strings = 16;
constexpr std::size_t max_salt_bytes = 4096;

void read_prompt(const json& value, completion_request& request) {
  constexpr auto allowed = "a string, an array with one string, or an array of token ids";
  if (value.is_string()) {
    request.prompt = value.get<std::string>();
  } else if (value.is_array() && value.size() == 1 && value.front().is_string()) {
    request.prompt = value.front().get<std::string>();
  } else if (value.is_array()) {
    std::vector<token_id> tokens;
    tokens.reserve(value.size());
    for (const auto& item : value) {
      if (!item.is_number_integer()) throw http::invalid_value("prompt", http::describe(value), allowed);
      const auto name = "prompt[" + std::to_string(tokens.size()) + "]";
      tokens.push_back(static_cast<token_id>(read_integer(name, item, 0, std::numeric_limits<token_id>::max())));
    }
    request.prompt = std::move(tokens);
  } else {
    throw http::invalid_value("prompt", http::describe(value), allowed);
  }
}

void read_stream_options(const json& value, completion_request& request) {
  if (!value.is_object()) throw http::invalid_value("stream_options", http::describe(value), "an object");
  request.has_stream_options = true;
  for (const auto& [key, item] : value.items()) {
    const auto name = "stream_options." + key;
    if (key == "include_usage") {
      request.include_usage = !item.is_null() && read_bool(name, item);
    } else if (key == "continuous_usage_stats") {
      check_neutral({name, "false"}, item);
    } else {
      throw http::api_error{400, "unknown field " + name + ", allowed: include_usage", "unknown_field", name};
    }
  }
}

void read_salt(const json& value, completion_request& request) {
  request.cache_salt = read_string("cache_salt", value, max_salt_bytes);
  if (request.cache_salt.empty()) throw http::invalid_value("cache_salt", "\"\"", "a string that is not empty");
}

void read_priority(const json& value, completion_request& request) {
  using bounds = std::numeric_limits<std::int32_t>;
  request.priority = static_cast<std::int32_t>(read_integer("priority", value, bounds::min(), bounds::max()));
}

constexpr auto max_count = std::numeric_limits<std::int32_t>::max();

void read_transfer_params(const json& value, completion_request& request) {
  if (!value.is_object()) throw http::invalid_value("kv_transfer_params", http::describe(value), "an object");
  for (const auto& [key, item] : value.items()) {
    const auto name = "kv_transfer_params." + key;
    auto* limit = key == "max_offload_tokens" ? &request.max_offload_tokens
                  : key == "max_load_tokens"  ? &request.max_load_tokens
                                              : nullptr;
    if (limit == nullptr) {
      throw http::api_error{400, "unknown field " + name + ", allowed: max_offload_tokens, max_load_tokens",
                            "unknown_field", name};
    }
    if (!item.is_null()) *limit = static_cast<std::uint32_t>(read_integer(name, item, 0, max_count));
  }
}

struct field {
  std::string_view name;
  void (*read)(const json& value, completion_request& request);  ///< not called for null
};

const std::array fields{
    field{"model", [](const json& v, completion_request& r) { r.model = read_string("model", v, max_label_bytes); }},
    field{"prompt", read_prompt},
    field{"max_tokens",
          [](const json& v, completion_request& r) {
            r.max_tokens = static_cast<std::uint32_t>(read_integer("max_tokens", v, 1, max_count));
          }},
    field{"temperature",
          [](const json& v, completion_request& r) { r.temperature = read_number("temperature", v, 0, 2); }},
    field{"seed",
          [](const json& v, completion_request& r) {
            using bounds = std::numeric_limits<std::int64_t>;
            r.seed = read_integer("seed", v, bounds::min(), bounds::max());
          }},
    field{"stream", [](const json& v, completion_request& r) { r.stream = read_bool("stream", v); }},
    field{"stream_options", read_stream_options},
    field{"ignore_eos", [](const json& v, completion_request& r) { r.ignore_eos = read_bool("ignore_eos", v); }},
    field{"stop", [](const json& v, completion_request& r) { r.stop = read_strings("stop", v, max_stop_strings); }},
    field{"cache_salt", read_salt},
    field{"priority", read_priority},
    field{"kv_transfer_params", read_transfer_params},
    field{"request_id",
          [](const json& v, completion_request& r) { r.request_id = read_string("request_id", v, max_label_bytes); }},
    field{"return_token_ids",
          [](const json& v, completion_request& r) { r.return_token_ids = read_bool("return_token_ids", v); }},
};

constexpr std::array unbuilt_fields{
    unbuilt_field{"messages", ""},
    unbuilt_field{"suffix", "\"\""},
    unbuilt_field{"max_completion_tokens", ""},
    unbuilt_field{"top_p", "1"},
    unbuilt_field{"top_k", "0 or -1"},
    unbuilt_field{"min_p", "0"},
    unbuilt_field{"n", "1"},
    unbuilt_field{"best_of", "1"},
    unbuilt_field{"echo", "false"},
    unbuilt_field{"logprobs", "false"},
    unbuilt_field{"top_logprobs", ""},
    unbuilt_field{"presence_penalty", "0"},
    unbuilt_field{"frequency_penalty", "0"},
    unbuilt_field{"repetition_penalty", "1"},
    unbuilt_field{"logit_bias", "{}"},
    unbuilt_field{"user", "\"\""},
    unbuilt_field{"min_tokens", "0"},
    unbuilt_field{"stop_token_ids", "[]"},
    unbuilt_field{"include_stop_str_in_output", "false"},
};

void read_field(const std::string& name, const json& value, completion_request& request) {
  for (const auto& entry : fields) {
    if (entry.name != name) continue;
    if (!value.is_null()) entry.read(value, request);
    return;
  }
  for (const auto& entry : unbuilt_fields) {
    if (entry.name == name) return check_neutral(entry, value);
  }
  std::string allowed;
  for (const auto& entry : fields) allowed += (allowed.empty() ? "" : ", ") + std::string{entry.name};
  throw http::api_error{400, "unknown field " + http::describe(json(name)) + ", allowed: " + allowed, "unknown_field",
                        name};
}

void check_whole(const json& body, const completion_request& request) {
  if (!body.contains("prompt") || body["prompt"].is_null()) {
    throw http::api_error{400, "field prompt is missing, allowed: a string or an array of token ids", "missing_field",
                          "prompt"};
  }
  const bool is_empty = std::visit([](const auto& prompt) { return prompt.empty(); }, request.prompt);
  if (is_empty) {
    throw http::api_error{400, "prompt is empty, allowed: one token or more", "prompt_empty", "prompt"};
  }
  if (request.has_stream_options && !request.stream) {
    throw http::api_error{400, "stream_options is given, allowed: only together with stream true", "invalid_value",
                          "stream_options"};
  }
}

}  // namespace

completion_request decode_completion_request(std::string_view text) {
  json body;
  try {
    body = http::parse_json(text);
  } catch (const http::json_error& failure) {
    throw http::api_error{400, std::string{"the body is not valid JSON: "} + failure.what(), "invalid_json"};
  }
  if (!body.is_object()) {
    throw http::api_error{400, "the body must be a JSON object, got " + http::describe(body), "invalid_json"};
  }
  completion_request request;
  for (const auto& [name, value] : body.items()) read_field(name, value, request);
  check_whole(body, request);
  return request;
}

}  // namespace sluice::serve
