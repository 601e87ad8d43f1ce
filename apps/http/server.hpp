// SPDX-License-Identifier: Apache-2.0
//
// Accepts connections and hands complete requests to a handler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "http/exchange.hpp"
#include "http/limits.hpp"
#include "http/loop.hpp"

namespace sluice::http {

/// The address cannot be listened on; the message says which and why.
struct listen_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Lives on one loop. `open` and `port` from any thread before the loop runs, the rest on the loop's thread.
/// `loop` and `handler` outlive it.
class server {
 public:
  server(loop& runs_on, handler& answers, const limits& bounds);
  ~server();

  /// Binds and listens; clients may connect but are not served before `start`. Throws listen_error.
  void open(const std::string& host, std::uint16_t port);

  /// The bound port; after `open`.
  std::uint16_t port() const;

  void start();

  /// From now on each answer ends its connection; connections are still accepted.
  void begin_drain();

  /// Stops accepting, ends idle connections, lets open answers finish until `deadline` has passed, cuts the
  /// rest, then calls `done`.
  void close(std::chrono::milliseconds deadline, std::function<void()> done);

  std::size_t num_connections() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace sluice::http
