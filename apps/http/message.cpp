// SPDX-License-Identifier: Apache-2.0
#include "http/message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include <sluice/version.hpp>

namespace sluice::http {
namespace {

struct phrase {
  int status;
  std::string_view text;
};

constexpr std::array phrases{
    phrase{200, "OK"},
    phrase{400, "Bad Request"},
    phrase{401, "Unauthorized"},
    phrase{404, "Not Found"},
    phrase{405, "Method Not Allowed"},
    phrase{408, "Request Timeout"},
    phrase{413, "Payload Too Large"},
    phrase{417, "Expectation Failed"},
    phrase{429, "Too Many Requests"},
    phrase{431, "Request Header Fields Too Large"},
    phrase{500, "Internal Server Error"},
    phrase{501, "Not Implemented"},
    phrase{503, "Service Unavailable"},
    phrase{505, "HTTP Version Not Supported"},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 40> text{};
  const auto length = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return {text.data(), length};
}

}  // namespace

bool iequals(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view request::find(std::string_view name) const {
  for (const auto& field : headers) {
    if (iequals(field.name, name)) return field.value;
  }
  return {};
}

std::string_view reason_phrase(int status) {
  for (const auto& entry : phrases) {
    if (entry.status == status) return entry.text;
  }
  return "Unknown";
}

std::string serialise_head(const response& answer, const request& asked, body_framing framing, bool keep_alive) {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + ' ' + std::string{reason_phrase(answer.status)} +
                     "\r\nServer: sluice/" SLUICE_VERSION "\r\nDate: " + http_date() + "\r\n";
  const auto add = [&text](std::string_view name, std::string_view value) {
    text.append(name).append(": ").append(value).append("\r\n");
  };
  if (!answer.content_type.empty()) add("Content-Type", answer.content_type);
  for (const auto& field : answer.headers) add(field.name, field.value);
  if (const auto label = asked.find("X-Request-Id"); !label.empty()) add("X-Request-Id", label);
  if (framing == body_framing::content_length) add("Content-Length", std::to_string(answer.body.size()));
  if (framing == body_framing::chunked) add("Transfer-Encoding", "chunked");
  if (!keep_alive) add("Connection", "close");
  if (keep_alive && asked.minor_version == 0) add("Connection", "keep-alive");
  text += "\r\n";
  return text;
}

std::string encode_chunk(std::string_view data) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), data.size(), 16).ptr;
  std::string chunk;
  chunk.reserve(data.size() + 24);
  chunk.append(digits.data(), end).append("\r\n").append(data).append("\r\n");
  return chunk;
}

}  // namespace sluice::http
