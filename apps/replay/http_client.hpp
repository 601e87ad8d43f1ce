// SPDX-License-Identifier: Apache-2.0
//
// A blocking HTTP client with a deadline for each request. One connection per request.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

namespace sluice::replay {

struct endpoint {
  std::string host;
  std::string port;

  std::string url() const { return "http://" + host + ":" + port; }
};

/// `http://HOST[:PORT]`, with or without a slash at the end. Throws replay_error for anything else.
endpoint parse_url(std::string_view url);

struct http_reply {
  int status = 0;
  std::string body;
};

/// Stateless, so any thread may call. Every function throws replay_error when the server cannot be reached, breaks
/// off, or has not answered wholly within the timeout.
class http_client {
 public:
  http_client(endpoint server, std::chrono::milliseconds timeout);

  http_reply get(std::string_view target) const;
  http_reply post(std::string_view target, std::string_view json) const;

  /// Called with the status and each piece of the body as it arrives.
  using piece_handler = std::function<void(int status, std::string_view piece)>;

  /// Returns the status. `stop` closes the connection from another thread; then replay_error is thrown.
  int post_stream(std::string_view target, std::string_view json, const piece_handler& on_piece,
                  const std::stop_token& stop = {}) const;

  const endpoint& server() const { return server_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  endpoint server_;
  std::chrono::milliseconds timeout_;
};

}  // namespace sluice::replay
