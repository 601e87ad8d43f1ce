// SPDX-License-Identifier: Apache-2.0
//
// Bytes to requests. The one user of Beast.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/limits.hpp"
#include "http/message.hpp"

namespace sluice::http {

/// head -> head_done -> body -> done; failed from anywhere. `take` goes back to head.
enum class parse_state { head, head_done, body, done, failed };

struct parse_failure {
  int status = 400;
  std::string message;
};

/// Incremental and strict: what two servers could read differently is an error (Content-Length together with
/// Transfer-Encoding, repeated lengths, unknown codings).
class request_parser {
 public:
  explicit request_parser(const limits& bounds);
  ~request_parser();

  /// Parses a prefix of `input` and returns its length; 0 when more bytes are needed. Stops at `head_done`;
  /// the next call goes on with the body.
  std::size_t feed(std::string_view input);

  parse_state state() const { return state_; }
  const parse_failure& failure() const { return failure_; }

  /// Complete from `head_done` on; after a failure, as much as was understood.
  const request& head() const { return request_; }

  /// The complete request. Call in state done.
  request take();

 private:
  struct beast_parser;

  void fail(int status, std::string message);
  void read_head();
  bool check_framing();

  const limits& limits_;
  std::unique_ptr<beast_parser> parser_;
  request request_;
  parse_state state_ = parse_state::head;
  parse_failure failure_;
};

}  // namespace sluice::http
