// SPDX-License-Identifier: Apache-2.0
//
// Validators shared by the request bodies. Each throws http::api_error (400) that names the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/json.hpp"

namespace sluice::serve {

bool read_bool(std::string_view name, const http::json& value);

/// A JSON integer in [least, most]; 1.0 and true are not integers.
std::int64_t read_integer(std::string_view name, const http::json& value, std::int64_t least, std::int64_t most);

/// A JSON number in [least, most].
double read_number(std::string_view name, const http::json& value, double least, double most);

/// At most `max_bytes` bytes; may be empty.
std::string read_string(std::string_view name, const http::json& value, std::size_t max_bytes);

/// One string or an array of up to `max_count` of them, none empty.
std::vector<std::string> read_strings(std::string_view name, const http::json& value, std::size_t max_count);

/// A field that the API has and this server has not: only its neutral values pass.
struct unbuilt_field {
  std::string_view name;
  std::string_view neutral;  ///< JSON texts, separated by " or "; null always passes
};

/// Throws unless `value` is null or one of the neutral values.
void check_neutral(const unbuilt_field& field, const http::json& value);

}  // namespace sluice::serve
