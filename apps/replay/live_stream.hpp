// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "replay/completion.hpp"
#include "replay/http_client.hpp"

namespace sluice::replay {

/// A streamed completion that is being received by a thread of its own. Destroying it before its end closes the
/// connection, which aborts the request. Owned and called by one thread.
class live_stream {
 public:
  live_stream(const http_client& client, completion_request request);
  live_stream(const live_stream&) = delete;
  live_stream& operator=(const live_stream&) = delete;

  const completion_request& asked() const { return request_; }

  /// Waits until `num_tokens` tokens or the end have arrived. Throws replay_error when the stream fails or `timeout`
  /// has passed.
  void wait_for_tokens(std::size_t num_tokens, std::chrono::milliseconds timeout);

  /// Tokens that have arrived.
  std::size_t num_tokens() const;

  /// From the start until the first token arrived; none before that.
  std::optional<std::chrono::milliseconds> time_to_first_token() const;

  /// Whether the whole answer, or its failure, has arrived.
  bool has_ended() const;

  /// Waits for the end, at most the client's timeout. Throws replay_error when the stream failed.
  completion finish();

 private:
  void receive(const std::stop_token& stop);
  void take_piece(int status, std::string_view piece);

  const http_client client_;
  const completion_request request_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;  ///< guards everything between here and the thread
  std::condition_variable changed_;
  completion_reader reader_;
  std::string error_body_;
  std::optional<std::chrono::milliseconds> time_to_first_token_;
  std::exception_ptr failure_;
  bool has_ended_ = false;
  std::jthread thread_;  ///< last: it uses all of the above
};

}  // namespace sluice::replay
