// SPDX-License-Identifier: Apache-2.0
#include "replay/http_client.hpp"

#include <array>
#include <cstdint>
#include <regex>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "replay/errors.hpp"

namespace sluice::replay {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
constexpr std::uint64_t max_reply_bytes = 64ULL << 20;

using outgoing = http::request<http::string_body>;

/// One request on its own connection. Asynchronous operations that are waited for, because only those obey the
/// deadline of a tcp_stream.
class connection {
 public:
  connection(const endpoint& server, std::chrono::milliseconds timeout, const std::stop_token& stop)
      : server_(server), on_stop_(stop, close_stream{context_, stream_}) {
    stream_.expires_after(timeout);
  }

  int run(const outgoing& request, const http_client::piece_handler& on_piece) {
    asio::ip::tcp::resolver resolver(context_);
    const auto addresses = resolver.resolve(server_.host, server_.port, error_);
    check("resolve");
    await("connect",
          [&](auto done) { stream_.async_connect(addresses, [done](error_code error, const auto&) { done(error); }); });
    await("send", [&](auto done) {
      http::async_write(stream_, request, [done](error_code error, std::size_t) { done(error); });
    });
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(max_reply_bytes);
    await("read", [&](auto done) {
      http::async_read_header(stream_, buffer_, parser, [done](error_code error, std::size_t) { done(error); });
    });
    while (!parser.is_done()) read_piece(parser, on_piece);
    return parser.get().result_int();
  }

 private:
  struct close_stream {
    asio::io_context& context;
    beast::tcp_stream& stream;
    void operator()() const {
      asio::post(context, [&stream = stream] { stream.close(); });
    }
  };

  void read_piece(http::response_parser<http::buffer_body>& parser, const http_client::piece_handler& on_piece) {
    std::array<char, 16 * 1024> data;
    parser.get().body().data = data.data();
    parser.get().body().size = data.size();
    await("read", [&](auto done) {
      http::async_read_some(stream_, buffer_, parser, [done](error_code error, std::size_t) {
        done(error == http::error::need_buffer ? error_code{} : error);
      });
    });
    const std::size_t num_read = data.size() - parser.get().body().size;
    if (num_read > 0) on_piece(parser.get().result_int(), {data.data(), num_read});
  }

  template <class Start>
  void await(const char* what, Start start) {
    start([this](error_code error) { error_ = error; });
    context_.restart();
    context_.run();
    check(what);
  }

  void check(const char* what) const {
    if (!error_) return;
    const bool is_late = error_ == beast::error::timeout;
    throw replay_error(server_.url() + ": " + what + ": " + (is_late ? "no answer in time" : error_.message()));
  }

  const endpoint& server_;
  asio::io_context context_{1};
  beast::tcp_stream stream_{context_};
  beast::flat_buffer buffer_;
  error_code error_;
  std::stop_callback<close_stream> on_stop_;
};

outgoing make_request(http::verb verb, const endpoint& server, std::string_view target, std::string_view json) {
  outgoing request{verb, {target.data(), target.size()}, 11};
  request.set(http::field::host, server.host + ":" + server.port);
  request.set(http::field::connection, "close");
  if (verb == http::verb::post) request.set(http::field::content_type, "application/json");
  request.body() = std::string(json);
  request.prepare_payload();
  return request;
}

}  // namespace

endpoint parse_url(std::string_view url) {
  static const std::regex pattern(R"(http://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]{1,5}))?/?)");
  std::cmatch match;
  if (!std::regex_match(url.data(), url.data() + url.size(), match, pattern))
    throw replay_error("not a URL of the form http://HOST:PORT: " + std::string(url));
  return {match[1].str(), match[2].matched ? match[2].str() : "80"};
}

http_client::http_client(endpoint server, std::chrono::milliseconds timeout)
    : server_(std::move(server)), timeout_(timeout) {}

http_reply http_client::get(std::string_view target) const {
  http_reply reply;
  const auto keep = [&](int, std::string_view piece) { reply.body += piece; };
  reply.status = connection(server_, timeout_, {}).run(make_request(http::verb::get, server_, target, {}), keep);
  return reply;
}

http_reply http_client::post(std::string_view target, std::string_view json) const {
  http_reply reply;
  const auto keep = [&](int, std::string_view piece) { reply.body += piece; };
  reply.status = post_stream(target, json, keep);
  return reply;
}

int http_client::post_stream(std::string_view target, std::string_view json, const piece_handler& on_piece,
                             const std::stop_token& stop) const {
  return connection(server_, timeout_, stop).run(make_request(http::verb::post, server_, target, json), on_piece);
}

}  // namespace sluice::replay
