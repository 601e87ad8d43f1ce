// SPDX-License-Identifier: Apache-2.0
#include "http/connection.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>

namespace sluice::http {

namespace asio = boost::asio;

connection::connection(asio::ip::tcp::socket socket, connection_host& host)
    : socket_{std::move(socket)}, host_{host}, parser_{host_.limits} {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay{true}, ignored);
  if (const int bytes = host_.limits.send_buffer_bytes; bytes > 0) {
    socket_.set_option(asio::socket_base::send_buffer_size{bytes}, ignored);
  }
}

void connection::start() {
  phase_timer_ = host_.loop.after(host_.limits.idle_timeout, [this] { on_read_timeout(); });
  wait_readable();
}

void connection::close_when_answered() {
  is_keep_alive_ = false;
  if (state_ == connection_state::reading || state_ == connection_state::lingering) close_now();
}

void connection::close_now() { lose(gone_reason::server_closed); }

void connection::send_response(response answer) {
  const bool is_head = call_ && call_->asked().method == "HEAD";
  const request none{.method = {}, .path = {}, .query = {}, .headers = {}, .body = {}};
  is_keep_alive_ = is_keep_alive_ && !host_.is_closing;
  output_ += serialise_head(answer, call_ ? call_->asked() : none, body_framing::content_length, is_keep_alive_);
  if (!is_head) output_ += answer.body;
  is_answer_complete_ = true;
  detach_call();
  try_send();
}

void connection::begin_stream(response head) {
  framing_ = call_->asked().minor_version == 0 ? body_framing::until_close : body_framing::chunked;
  is_keep_alive_ = is_keep_alive_ && framing_ == body_framing::chunked && !host_.is_closing;
  output_ += serialise_head(head, call_->asked(), framing_, is_keep_alive_);
  try_send();
}

void connection::write_stream(std::string_view data) {
  if (data.empty()) return;
  if (framing_ == body_framing::chunked) {
    output_ += encode_chunk(data);
  } else {
    output_ += data;
  }
}

void connection::flush_stream() {
  const auto self = shared_from_this();
  try_send();
  if (num_unsent() > host_.limits.max_output_bytes) lose(gone_reason::slow_reader);
}

void connection::end_stream(after_stream then) {
  if (framing_ == body_framing::chunked) output_ += last_chunk;
  is_keep_alive_ = is_keep_alive_ && then == after_stream::keep && !host_.is_closing;
  is_answer_complete_ = true;
  detach_call();
  try_send();
}

void connection::try_send() {
  while (state_ != connection_state::closed && !is_write_pending_ && num_unsent() > 0) {
    error_code failure;
    num_sent_ += socket_.write_some(asio::buffer(output_.data() + num_sent_, num_unsent()), failure);
    if (failure == asio::error::would_block) {
      output_.erase(0, std::exchange(num_sent_, 0));
      return wait_writable();
    }
    if (failure) return lose(gone_reason::disconnected);
  }
  if (state_ == connection_state::closed || num_unsent() > 0) return;
  output_.clear();
  num_sent_ = 0;
  if (std::exchange(is_answer_complete_, false)) on_answered();
}

void connection::wait_writable() {
  is_write_pending_ = true;
  stall_timer_ = host_.loop.after(host_.limits.stall_timeout, [this] { lose(gone_reason::slow_reader); });
  socket_.async_wait(asio::ip::tcp::socket::wait_write, [self = shared_from_this()](error_code failure) {
    self->is_write_pending_ = false;
    self->stall_timer_.reset();
    if (!failure) self->try_send();
  });
}

void connection::on_answered() {
  if (!is_keep_alive_ || is_input_ended_) return linger();
  state_ = connection_state::reading;
  phase_timer_ = host_.loop.after(host_.limits.idle_timeout, [this] { on_read_timeout(); });
  host_.loop.post([self = shared_from_this()] {  // pipelined requests must not nest
    self->parse();
    self->wait_readable();
  });
}

void connection::linger() {
  if (is_input_ended_) return lose(gone_reason::server_closed);
  state_ = connection_state::lingering;
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  num_discarded_ = input_.size();
  input_.clear();
  phase_timer_ = host_.loop.after(host_.limits.linger_timeout, [this] { lose(gone_reason::server_closed); });
  wait_readable();
}

void connection::lose(gone_reason reason) {
  if (state_ == connection_state::closed) return;
  const auto self = shared_from_this();
  state_ = connection_state::closed;
  phase_timer_.reset();
  stall_timer_.reset();
  error_code ignored;
  socket_.close(ignored);
  const auto lost = detach_call();
  host_.on_closed(self);
  if (lost) lost->notify_gone(reason);
}

std::shared_ptr<connection::call> connection::detach_call() {
  if (call_) call_->detach();
  return std::exchange(call_, nullptr);
}

void connection::call::respond(response answer) {
  if (owner_ != nullptr) owner_->send_response(std::move(answer));
}

void connection::call::begin_stream(response head) {
  if (owner_ != nullptr) owner_->begin_stream(std::move(head));
}

void connection::call::write(std::string_view data) {
  if (owner_ != nullptr) owner_->write_stream(data);
}

void connection::call::flush() {
  if (owner_ != nullptr) owner_->flush_stream();
}

void connection::call::end_stream(after_stream then) {
  if (owner_ != nullptr) owner_->end_stream(then);
}

void connection::call::notify_gone(gone_reason reason) {
  if (const auto notice = std::exchange(on_gone_, nullptr)) notice(reason);
}

}  // namespace sluice::http
