// SPDX-License-Identifier: Apache-2.0
//
// The body of `POST /v1/completions`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sluice/runtime/runtime.hpp>

namespace sluice::serve {

inline constexpr std::size_t max_label_bytes = 256;  ///< of names that a client gives: model, request_id, X-Request-Id

/// What a client asked for, each value checked by itself. Limits of the model are checked later.
struct completion_request {
  std::string model;  ///< empty: the served one
  std::variant<std::string, std::vector<token_id>> prompt;
  std::optional<std::uint32_t> max_tokens;
  double temperature = 1.0;
  std::optional<std::int64_t> seed;
  bool stream = false;
  bool has_stream_options = false;
  bool include_usage = false;
  bool ignore_eos = false;
  bool return_token_ids = false;
  std::vector<std::string> stop;
  std::string cache_salt;
  std::string request_id;  ///< the client's label
  std::int32_t priority = 0;
  std::optional<std::uint32_t> max_offload_tokens;
  std::optional<std::uint32_t> max_load_tokens;
};

/// Decodes a body. Throws http::api_error (400) that names the field, what was given and what is allowed;
/// fields of the API that are not built are accepted only as null or with their neutral value.
completion_request decode_completion_request(std::string_view body);

}  // namespace sluice::serve
