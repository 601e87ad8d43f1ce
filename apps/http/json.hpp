// SPDX-License-Identifier: Apache-2.0
//
// Strict JSON in, safe JSON out.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace sluice::http {

/// Objects keep the order in which their fields were added.
using json = nlohmann::ordered_json;

/// The message says what is wrong and where.
struct json_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline constexpr int max_json_depth = 32;
inline constexpr std::size_t max_json_fields = 1024;  ///< of one object

/// Parses one document. Throws json_error for anything that is not JSON in UTF-8, for numbers that no double
/// can hold, for repeated fields of an object and for what exceeds `max_json_depth` or `max_json_fields`.
json parse_json(std::string_view text);

/// One line. Never throws: bytes that are not UTF-8 become the replacement character.
std::string dump(const json& value);

/// At most `max_bytes` of `text`, not cut inside a UTF-8 character; "..." follows if anything was cut.
std::string clip(std::string text, std::size_t max_bytes);

/// `value` as JSON for an error message, cut to a readable length.
std::string describe(const json& value);

/// `text` as a JSON string: safe in a log line.
std::string quote(std::string_view text);

}  // namespace sluice::http
