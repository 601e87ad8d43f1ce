// SPDX-License-Identifier: Apache-2.0
//
// The OpenAI shapes of a completion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/runtime/runtime.hpp>

#include "http/json.hpp"

namespace sluice::serve {

/// What every answer to one request repeats.
struct completion_identity {
  std::string id;
  std::int64_t created = 0;  ///< seconds since 1970
  std::string model;
  std::string system_fingerprint;
};

/// The one choice of an answer or of a chunk.
struct completion_choice {
  std::string_view text;
  std::optional<finish_reason> finish;               ///< none while the stream goes on
  const std::vector<token_id>* token_ids = nullptr;  ///< null: not asked for
};

std::string_view to_string(finish_reason reason);

http::json to_json(const request_usage& usage);

/// A whole answer, or a chunk of a stream: the shapes are the same.
http::json completion_body(const completion_identity& identity, const completion_choice& choice);

/// The last chunk with `include_usage`: no choices.
http::json usage_chunk(const completion_identity& identity, const request_usage& usage);

/// One server-sent event.
std::string sse_event(const http::json& data);

inline constexpr std::string_view sse_done = "data: [DONE]\n\n";

}  // namespace sluice::serve
