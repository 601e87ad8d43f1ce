// SPDX-License-Identifier: Apache-2.0
#include "http/json.hpp"

#include <unordered_set>
#include <vector>

namespace sluice::http {
namespace {

constexpr std::size_t max_described_bytes = 80;

/// Watches the parser: depth and repeated fields.
class strict_rules {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        check_depth(depth);
        seen_.emplace_back();
        break;
      case json::parse_event_t::object_end: seen_.pop_back(); break;
      case json::parse_event_t::array_start: check_depth(depth); break;
      case json::parse_event_t::key: check_field(parsed); break;
      case json::parse_event_t::array_end:
      case json::parse_event_t::value: break;
    }
    return true;
  }

 private:
  static void check_depth(int depth) {
    if (depth >= max_json_depth) {
      throw json_error{"nested deeper than " + std::to_string(max_json_depth) + " levels"};
    }
  }

  void check_field(const json& name) {
    auto& fields = seen_.back();
    if (!fields.insert(name.get_ref<const std::string&>()).second) {
      throw json_error{"the field " + describe(name) + " is given twice"};
    }
    if (fields.size() > max_json_fields) {
      throw json_error{"an object has more than " + std::to_string(max_json_fields) + " fields"};
    }
  }

  std::vector<std::unordered_set<std::string>> seen_;
};

/// Without the library's "[json.exception.parse_error.101] parse error at ".
std::string plain(std::string_view message) {
  if (const auto end = message.find("] "); message.starts_with('[') && end != message.npos)
    message.remove_prefix(end + 2);
  constexpr std::string_view lead = "parse error at ";
  if (message.starts_with(lead)) message.remove_prefix(lead.size());
  return std::string{message};
}

}  // namespace

json parse_json(std::string_view text) {
  try {
    strict_rules rules;
    return json::parse(
        text, [&rules](int depth, json::parse_event_t event, json& parsed) { return rules(depth, event, parsed); });
  } catch (const json::exception& failure) {
    throw json_error{plain(failure.what())};
  }
}

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string clip(std::string text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  auto end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string describe(const json& value) {
  if (value.is_array() && value.size() > 16) return "an array of " + std::to_string(value.size()) + " elements";
  return clip(dump(value), max_described_bytes);
}

std::string quote(std::string_view text) { return dump(json(std::string{text})); }

}  // namespace sluice::http
