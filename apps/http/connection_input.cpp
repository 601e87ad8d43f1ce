// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <utility>

#include <poll.h>

#include <boost/asio/buffer.hpp>

#include "http/connection.hpp"

namespace sluice::http {

namespace asio = boost::asio;

void connection::wait_readable() {
  if (is_read_pending_ || is_input_ended_ || state_ == connection_state::closed) return;
  if (state_ == connection_state::answering && input_.size() >= host_.limits.max_pipelined_bytes) {
    return watch_full_input();
  }
  is_read_pending_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_read, [self = shared_from_this()](error_code failure) {
    self->is_read_pending_ = false;
    if (!failure) self->on_readable();
  });
}

void connection::on_readable() {
  if (state_ == connection_state::closed) return;
  std::array<char, 64 * 1024> bytes;
  error_code failure;
  const auto num_read = socket_.read_some(asio::buffer(bytes), failure);
  if (failure && failure != asio::error::would_block) return on_input_end();
  on_input({bytes.data(), num_read});
  wait_readable();
}

void connection::on_input(std::string_view bytes) {
  switch (state_) {
    case connection_state::reading:
      input_ += bytes;
      parse();
      break;
    case connection_state::answering: input_ += bytes; break;
    case connection_state::lingering:
      num_discarded_ += bytes.size();
      if (num_discarded_ > host_.limits.max_discarded_bytes) lose(gone_reason::server_closed);
      break;
    case connection_state::closed: break;
  }
}

// A client that closes its sending side counts as gone, unless its answer is complete and only has to be sent.
void connection::on_input_end() {
  is_input_ended_ = true;
  const bool has_answer_to_send = state_ == connection_state::answering && !call_ && num_unsent() > 0;
  if (!has_answer_to_send) lose(gone_reason::disconnected);
}

// With the input buffer full nothing more is read, so the end of the input is polled for.
void connection::watch_full_input() {
  phase_timer_ = host_.loop.after(std::chrono::milliseconds{50}, [this] {
    if (is_peer_gone()) return on_input_end();
    wait_readable();
  });
}

bool connection::is_peer_gone() {
  pollfd entry{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void connection::parse() {
  while (state_ == connection_state::reading) {
    const bool is_new = parser_.state() == parse_state::head;
    if (is_new && input_.empty()) return;
    const auto before = parser_.state();
    const auto used = parser_.feed(input_);
    input_.erase(0, used);
    switch (parser_.state()) {
      case parse_state::head:
        if (std::exchange(is_head_begun_, true)) return;
        phase_timer_ = host_.loop.after(host_.limits.head_timeout, [this] { on_read_timeout(); });
        return;
      case parse_state::head_done: on_head(); break;
      case parse_state::body:
        if (used != 0 || before != parse_state::body) break;
        if (input_.size() <= host_.limits.max_head_bytes) return;
        return reject(431, "a chunk's extensions or the trailer fields exceed " +
                               std::to_string(host_.limits.max_head_bytes) + " bytes");
      case parse_state::done: on_request(); return;
      case parse_state::failed: reject(parser_.failure().status, parser_.failure().message); return;
    }
  }
}

void connection::on_head() {
  is_head_begun_ = false;
  phase_timer_ = host_.loop.after(host_.limits.body_timeout, [this] { on_read_timeout(); });
  if (!parser_.head().expects_continue || !input_.empty()) return;
  auto refusal = host_.handler.refuse(parser_.head());
  if (!refusal) {
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
    return try_send();
  }
  state_ = connection_state::answering;
  is_keep_alive_ = false;
  call_ = std::make_shared<call>(*this, parser_.head());
  send_response(std::move(*refusal));
}

void connection::on_request() {
  phase_timer_.reset();
  state_ = connection_state::answering;
  auto complete = parser_.take();
  is_keep_alive_ = complete.keep_alive && !host_.is_closing;
  call_ = std::make_shared<call>(*this, std::move(complete));
  host_.handler.handle(call_);
  wait_readable();
}

void connection::on_read_timeout() {
  const bool is_idle = parser_.state() == parse_state::head && input_.empty();
  if (is_idle) return lose(gone_reason::server_closed);
  reject(408, "the request did not arrive in time");
}

void connection::reject(int status, std::string_view message) {
  state_ = connection_state::answering;
  is_keep_alive_ = false;
  call_ = std::make_shared<call>(*this, parser_.head());
  send_response(host_.handler.reject(status, message));
}

}  // namespace sluice::http
