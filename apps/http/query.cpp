// SPDX-License-Identifier: Apache-2.0
#include "http/query.hpp"

#include <algorithm>
#include <charconv>

#include "http/api_error.hpp"

namespace sluice::http {
namespace {

std::string decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned value = 0;
    const auto* first = text.data() + std::min(i + 1, text.size());
    const auto* last = text.data() + std::min(i + 3, text.size());
    const auto parsed = std::from_chars(first, last, value, 16);
    if (last - first != 2 || parsed.ec != std::errc{} || parsed.ptr != last) {
      throw api_error{400, "invalid query: bad percent-encoding in " + quote(text), "invalid_value"};
    }
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

query_params query_params::parse(std::string_view query, const std::vector<std::string>& allowed) {
  query_params result;
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto name = decode(pair.substr(0, equals));
    const auto value = equals == pair.npos ? std::string{} : decode(pair.substr(equals + 1));
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      throw api_error{400, "unknown query parameter " + quote(name) + ", allowed: " + list(allowed),
                      "unknown_parameter", name};
    }
    if (result.find(name) != nullptr) {
      throw api_error{400, "query parameter " + name + " is given twice", "invalid_value", name};
    }
    result.params_.emplace_back(name, value);
  }
  return result;
}

bool query_params::flag(std::string_view name, bool fallback) const {
  const auto* value = find(name);
  if (value == nullptr) return fallback;
  if (*value == "true" || *value == "1") return true;
  if (*value == "false" || *value == "0") return false;
  throw invalid_value(std::string{name}, quote(*value), "true, false, 1, 0");
}

const std::string* query_params::find(std::string_view name) const {
  for (const auto& [key, value] : params_) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace sluice::http
