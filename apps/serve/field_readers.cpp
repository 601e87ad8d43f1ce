// SPDX-License-Identifier: Apache-2.0
#include "serve/field_readers.hpp"

#include <cmath>
#include <limits>

#include "http/api_error.hpp"

namespace sluice::serve {
namespace {

using http::json;

[[noreturn]] void refuse(std::string_view name, const json& value, const std::string& allowed) {
  throw http::invalid_value(std::string{name}, http::describe(value), allowed);
}

std::string range(std::string_view kind, const std::string& least, const std::string& most) {
  return std::string{kind} + " from " + least + " to " + most;
}

}  // namespace

bool read_bool(std::string_view name, const json& value) {
  if (!value.is_boolean()) refuse(name, value, "true, false");
  return value.get<bool>();
}

std::int64_t read_integer(std::string_view name, const json& value, std::int64_t least, std::int64_t most) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() ||
                     value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    refuse(name, value, range("an integer", std::to_string(least), std::to_string(most)));
  }
  return value.get<std::int64_t>();
}

double read_number(std::string_view name, const json& value, double least, double most) {
  if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most)) {
    refuse(name, value, range("a number", http::dump(json(least)), http::dump(json(most))));
  }
  return value.get<double>();
}

std::string read_string(std::string_view name, const json& value, std::size_t max_bytes) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > max_bytes) {
    refuse(name, value, "a string of at most " + std::to_string(max_bytes) + " bytes");
  }
  return value.get<std::string>();
}

std::vector<std::string> read_strings(std::string_view name, const json& value, std::size_t max_count) {
  const auto allowed = "a non-empty string, or an array of up to " + std::to_string(max_count) + " of them";
  const json list = value.is_array() ? value : json::array({value});
  if (list.size() > max_count) refuse(name, value, allowed);
  std::vector<std::string> strings;
  for (const auto& item : list) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) refuse(name, value, allowed);
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

void check_neutral(const unbuilt_field& field, const json& value) {
  if (value.is_null()) return;
  for (auto rest = field.neutral; !rest.empty();) {
    const auto end = rest.find(" or ");
    if (value == json::parse(rest.substr(0, end))) return;
    rest = end == rest.npos ? std::string_view{} : rest.substr(end + 4);
  }
  const auto neutral = field.neutral.empty() ? std::string{} : ", " + std::string{field.neutral};
  throw http::api_error{400,
                        "field " + std::string{field.name} + " is not built yet: got " + http::describe(value) +
                            ", allowed: null" + neutral,
                        "unsupported_value", std::string{field.name}};
}

}  // namespace sluice::serve
