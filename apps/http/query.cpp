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

bool is_in(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

query_params query_params::parse(std::string_view query, const std::vector<std::string>& allowed,
                                 const std::vector<std::string>& repeatable) {
  query_params result;
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto name = decode(pair.substr(0, equals));
    const auto value = equals == pair.npos ? std::string{} : decode(pair.substr(equals + 1));
    if (!is_in(allowed, name)) {
      throw api_error{400, "unknown query parameter " + quote(name) + ", allowed: " + list(allowed),
                      "unknown_parameter", name};
    }
    if (result.find(name) != nullptr && !is_in(repeatable, name)) {
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

std::string query_params::choice(std::string_view name, const std::vector<std::string>& allowed) const {
  const auto* value = find(name);
  if (value == nullptr) return allowed.front();
  if (!is_in(allowed, *value)) throw invalid_value(std::string{name}, quote(*value), list(allowed));
  return *value;
}

std::uint64_t query_params::integer(std::string_view name, std::uint64_t least, std::uint64_t most,
                                    std::uint64_t fallback) const {
  const auto* text = find(name);
  if (text == nullptr) return fallback;
  std::uint64_t value = 0;
  const auto* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < least || value > most) {
    throw invalid_value(std::string{name}, quote(*text),
                        "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

std::vector<std::string> query_params::choices(std::string_view name, const std::vector<std::string>& allowed) const {
  std::vector<std::string> chosen;
  for (const auto& [key, value] : params_) {
    if (key != name) continue;
    for (std::size_t at = 0; at <= value.size();) {
      const auto item = value.substr(at, value.find(',', at) - at);
      if (!is_in(allowed, item)) throw invalid_value(std::string{name}, quote(item), list(allowed));
      chosen.push_back(item);
      at += item.size() + 1;
    }
  }
  return chosen;
}

const std::string* query_params::find(std::string_view name) const {
  for (const auto& [key, value] : params_) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace sluice::http
