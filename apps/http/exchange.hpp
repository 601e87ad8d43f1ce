// SPDX-License-Identifier: Apache-2.0
//
// The seam between the HTTP server and what answers requests.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "http/message.hpp"

namespace sluice::http {

/// Why there is nobody left to answer.
enum class gone_reason { disconnected, slow_reader, server_closed };

/// What happens to the connection after a stream.
enum class after_stream { keep, close };

/// One request and its answer: either `respond` once, or `begin_stream`, any number of `write` and `flush`,
/// `end_stream` once. Loop thread only. After the end, or once the client is gone, every call does nothing.
class exchange {
 public:
  virtual ~exchange() = default;

  virtual const request& asked() const = 0;

  virtual void respond(response answer) = 0;

  /// Sends `head` without its body. The body follows chunk by chunk.
  virtual void begin_stream(response head) = 0;

  /// Adds to the body of the stream. Nothing is sent before `flush` or `end_stream`.
  virtual void write(std::string_view data) = 0;

  /// Sends what the socket takes and keeps the rest. A client with more than `limits::max_output_bytes` unsent
  /// is gone (slow_reader).
  virtual void flush() = 0;

  virtual void end_stream(after_stream then) = 0;

  /// `call` is called at most once, as soon as the client is seen to be gone before the answer ended.
  virtual void on_gone(std::function<void(gone_reason)> call) = 0;
};

/// Answers requests. Loop thread only. Must not throw.
class handler {
 public:
  virtual ~handler() = default;

  /// Asked before a body that the client holds back (`Expect: 100-continue`); an answer is sent instead of
  /// asking for the body.
  virtual std::optional<response> refuse(const request& head) = 0;

  virtual void handle(std::shared_ptr<exchange> call) = 0;

  /// The answer to a request that the server itself cannot accept.
  virtual response reject(int status, std::string_view message) = 0;
};

}  // namespace sluice::http
