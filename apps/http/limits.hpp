// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace sluice::http {

/// What one connection may cost the server.
struct limits {
  std::size_t max_head_bytes = 32 * 1024;              ///< request line and header fields; more is 431
  std::size_t max_body_bytes = 8 * 1024 * 1024;        ///< more is 413
  std::size_t max_pipelined_bytes = 64 * 1024;         ///< input kept while a request is being answered
  std::size_t max_output_bytes = 1024 * 1024;          ///< unsent bytes of a stream; more ends it (slow reader)
  std::size_t max_discarded_bytes = 64 * 1024 * 1024;  ///< unread input thrown away after an error answer
  std::size_t max_connections = 16'384;                ///< beyond it new ones wait in the listen backlog
  int send_buffer_bytes = 0;                           ///< SO_SNDBUF; 0 leaves the system's value
  std::chrono::milliseconds idle_timeout{75'000};      ///< between two requests; then closed without a word
  std::chrono::milliseconds head_timeout{10'000};      ///< from the first byte to the end of the head; then 408
  std::chrono::milliseconds body_timeout{60'000};      ///< for the body; then 408
  std::chrono::milliseconds stall_timeout{30'000};     ///< without a byte written; then the client counts as gone
  std::chrono::milliseconds linger_timeout{2'000};     ///< for the client to close after the last answer
};

}  // namespace sluice::http
