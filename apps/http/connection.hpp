// SPDX-License-Identifier: Apache-2.0
//
// One client connection: reads requests one after the other, answers each, notices a client that goes away.
// Private to the server. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

#include "http/exchange.hpp"
#include "http/limits.hpp"
#include "http/loop.hpp"
#include "http/request_parser.hpp"

namespace sluice::http {

class connection;

/// What the connections of a server share.
struct connection_host {
  http::loop& loop;
  http::handler& handler;
  http::limits limits;
  bool is_closing = false;  ///< answers end their connection
  std::function<void(const std::shared_ptr<connection>&)> on_closed;
};

/// reading -> answering (a request is complete) -> reading (keep-alive) or lingering (last answer sent: unread
/// input is thrown away so that the answer is not lost) -> closed. Any -> closed when the socket fails.
enum class connection_state { reading, answering, lingering, closed };

class connection : public std::enable_shared_from_this<connection> {
 public:
  connection(boost::asio::ip::tcp::socket socket, connection_host& host);

  void start();

  /// Ends the connection after its answer; now if no answer is under way.
  void close_when_answered();

  /// Ends the connection; an open answer is cut off.
  void close_now();

 private:
  class call;
  using error_code = boost::system::error_code;

  // Input, connection_input.cpp.
  void wait_readable();
  void on_readable();
  void on_input(std::string_view bytes);
  void on_input_end();
  void watch_full_input();
  bool is_peer_gone();
  void parse();
  void on_head();
  void on_request();
  void on_read_timeout();
  void reject(int status, std::string_view message);

  // Output, connection.cpp.
  void send_response(response answer);
  void begin_stream(response head);
  void write_stream(std::string_view data);
  void flush_stream();
  void end_stream(after_stream then);
  void try_send();
  void wait_writable();
  void on_answered();
  void linger();
  void lose(gone_reason reason);
  std::shared_ptr<call> detach_call();

  std::size_t num_unsent() const { return output_.size() - num_sent_; }

  boost::asio::ip::tcp::socket socket_;
  connection_host& host_;
  connection_state state_ = connection_state::reading;

  request_parser parser_;
  std::string input_;
  std::size_t num_discarded_ = 0;
  bool is_read_pending_ = false;
  bool is_head_begun_ = false;
  bool is_input_ended_ = false;

  std::shared_ptr<call> call_;  ///< while answering
  std::string output_;
  std::size_t num_sent_ = 0;
  bool is_write_pending_ = false;
  bool is_answer_complete_ = false;
  bool is_keep_alive_ = false;
  body_framing framing_ = body_framing::content_length;

  timer phase_timer_;  ///< idle, head, body, linger, watch
  timer stall_timer_;
};

/// The exchange that handlers see; does nothing once the connection has let go of it.
class connection::call : public exchange {
 public:
  call(connection& owner, request asked) : owner_{&owner}, asked_{std::move(asked)} {}

  const request& asked() const override { return asked_; }
  void respond(response answer) override;
  void begin_stream(response head) override;
  void write(std::string_view data) override;
  void flush() override;
  void end_stream(after_stream then) override;
  void on_gone(std::function<void(gone_reason)> notice) override { on_gone_ = std::move(notice); }

  void detach() { owner_ = nullptr; }
  void notify_gone(gone_reason reason);

 private:
  connection* owner_;
  request asked_;
  std::function<void(gone_reason)> on_gone_;
};

}  // namespace sluice::http
