// SPDX-License-Identifier: Apache-2.0
//
// HTTP messages as plain values. No socket, no Beast.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::http {

struct header {
  std::string name;
  std::string value;
};

/// A request whose head, and later whose body, has been read.
struct request {
  std::string method;
  std::string path;   ///< up to the question mark, as sent
  std::string query;  ///< after the question mark, as sent
  int minor_version = 1;
  bool keep_alive = true;
  bool expects_continue = false;
  std::vector<header> headers;
  std::string body;

  /// The first field of that name, without regard to case; empty when there is none.
  std::string_view find(std::string_view name) const;
};

/// An answer. `Content-Length`, `Connection`, `Date` and `Server` are added when it is written.
struct response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<header> headers;
  std::string body;
};

/// How the body of an answer is delimited.
enum class body_framing { content_length, chunked, until_close };

std::string_view reason_phrase(int status);

/// Status line and header fields, the empty line included.
std::string serialise_head(const response& answer, const request& asked, body_framing framing, bool keep_alive);

/// One chunk of a chunked body. `data` must not be empty: that would end the body.
std::string encode_chunk(std::string_view data);

inline constexpr std::string_view last_chunk = "0\r\n\r\n";

bool iequals(std::string_view a, std::string_view b);

}  // namespace sluice::http
