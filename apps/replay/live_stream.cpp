// SPDX-License-Identifier: Apache-2.0
#include "replay/live_stream.hpp"

#include <string>
#include <utility>

#include "replay/errors.hpp"

namespace sluice::replay {

live_stream::live_stream(const http_client& client, completion_request request)
    : client_(client), request_(std::move(request)), thread_([this](const std::stop_token& stop) { receive(stop); }) {}

void live_stream::receive(const std::stop_token& stop) {
  std::exception_ptr failure;
  try {
    const int status = client_.post_stream(
        "/v1/completions", to_json(request_), [this](int code, std::string_view piece) { take_piece(code, piece); },
        stop);
    if (status != 200) throw replay_error("a completion got " + std::to_string(status) + ": " + error_body_);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  has_ended_ = true;
  changed_.notify_all();
}

void live_stream::take_piece(int status, std::string_view piece) {
  const std::lock_guard lock(mutex_);
  if (status == 200) {
    reader_.feed(piece);
    if (!time_to_first_token_ && !reader_.result().tokens.empty())
      time_to_first_token_ =
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin_);
  } else {
    error_body_ += piece;
  }
  changed_.notify_all();
}

void live_stream::wait_for_tokens(std::size_t num_tokens, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const bool is_in_time =
      changed_.wait_for(lock, timeout, [&] { return has_ended_ || reader_.result().tokens.size() >= num_tokens; });
  if (failure_) std::rethrow_exception(failure_);
  if (!is_in_time) throw replay_error("a stream has not started within " + std::to_string(timeout.count()) + " ms");
}

std::size_t live_stream::num_tokens() const {
  const std::lock_guard lock(mutex_);
  return reader_.result().tokens.size();
}

std::optional<std::chrono::milliseconds> live_stream::time_to_first_token() const {
  const std::lock_guard lock(mutex_);
  return time_to_first_token_;
}

bool live_stream::has_ended() const {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

completion live_stream::finish() {
  std::unique_lock lock(mutex_);
  // The client's own deadline ends the thread, so this wait is bounded.
  changed_.wait(lock, [this] { return has_ended_; });
  if (failure_) std::rethrow_exception(failure_);
  return reader_.result();
}

}  // namespace sluice::replay
