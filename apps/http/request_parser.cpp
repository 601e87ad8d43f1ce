// SPDX-License-Identifier: Apache-2.0
#include "http/request_parser.hpp"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace sluice::http {

namespace beast_http = boost::beast::http;

struct request_parser::beast_parser {
  beast_http::request_parser<beast_http::string_body> impl;
};

namespace {

std::string text(boost::beast::string_view view) { return {view.data(), view.size()}; }

parse_failure explain(beast_http::error code, const std::string& generic, const limits& bounds) {
  switch (code) {
    case beast_http::error::header_limit:
      return {431, "the request line and header fields exceed " + std::to_string(bounds.max_head_bytes) + " bytes"};
    case beast_http::error::body_limit:
      return {413, "the body exceeds " + std::to_string(bounds.max_body_bytes) + " bytes"};
    case beast_http::error::bad_content_length:
      return {400, "bad Content-Length; allowed: one number, and no Transfer-Encoding beside it"};
    case beast_http::error::bad_transfer_encoding:
      return {400, "bad Transfer-Encoding; allowed: chunked, and no Content-Length beside it"};
    case beast_http::error::bad_version: return {505, "the request line must end with HTTP/1.0 or HTTP/1.1"};
    default: return {400, "not a valid HTTP request: " + generic};
  }
}

}  // namespace

request_parser::request_parser(const limits& bounds) : limits_{bounds} {}
request_parser::~request_parser() = default;

std::size_t request_parser::feed(std::string_view input) {
  if (state_ == parse_state::done || state_ == parse_state::failed) return 0;
  if (!parser_) {
    parser_ = std::make_unique<beast_parser>();
    parser_->impl.header_limit(static_cast<std::uint32_t>(limits_.max_head_bytes));
    parser_->impl.body_limit(limits_.max_body_bytes);
  }
  auto& impl = parser_->impl;
  if (state_ == parse_state::head_done) state_ = parse_state::body;
  impl.eager(state_ == parse_state::body);
  boost::beast::error_code code;
  std::size_t used = 0;
  if (!impl.is_done()) used = impl.put(boost::asio::buffer(input.data(), input.size()), code);
  if (code == beast_http::error::need_more) code = {};
  if (code) {
    read_head();
    const auto why = explain(static_cast<beast_http::error>(code.value()), code.message(), limits_);
    fail(why.status, why.message);
    return used;
  }
  if (state_ == parse_state::head && impl.is_header_done()) {
    read_head();
    if (check_framing()) state_ = parse_state::head_done;
  } else if (state_ == parse_state::body && impl.is_done()) {
    request_.body = std::move(impl.get().body());
    state_ = parse_state::done;
  }
  return used;
}

void request_parser::read_head() {
  const auto& message = parser_->impl.get();
  request_ = {};
  request_.method = text(message.method_string());
  const auto target = text(message.target());
  const auto mark = target.find('?');
  request_.path = target.substr(0, mark);
  if (mark != std::string::npos) request_.query = target.substr(mark + 1);
  request_.minor_version = message.version() == 10 ? 0 : 1;
  request_.keep_alive = message.keep_alive();
  for (const auto& field : message) request_.headers.push_back({text(field.name_string()), text(field.value())});
  request_.expects_continue = request_.minor_version == 1 && iequals(request_.find("Expect"), "100-continue");
}

bool request_parser::check_framing() {
  const auto& message = parser_->impl.get();
  using beast_http::field;
  if (message.version() != 10 && message.version() != 11) {
    fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  } else if (message.count(field::content_length) > 1) {
    fail(400, "Content-Length is given more than once");
  } else if (message.count(field::transfer_encoding) != 0 &&
             (message.version() == 10 || message.count(field::transfer_encoding) > 1 ||
              !iequals(request_.find("Transfer-Encoding"), "chunked"))) {
    fail(400, "bad Transfer-Encoding; allowed: chunked, in HTTP/1.1");
  } else if (message.version() == 11 && message.count(field::host) != 1) {
    fail(400, "HTTP/1.1 wants one Host field");
  } else if (message.count(field::expect) != 0 && !iequals(request_.find("Expect"), "100-continue")) {
    fail(417, "unknown Expect; allowed: 100-continue");
  } else if (request_.path.empty() || request_.path.front() != '/') {
    fail(400, "the request target must begin with '/'");
  }
  return state_ != parse_state::failed;
}

void request_parser::fail(int status, std::string message) {
  state_ = parse_state::failed;
  failure_ = {status, std::move(message)};
}

request request_parser::take() {
  parser_.reset();
  state_ = parse_state::head;
  return std::exchange(request_, {});
}

}  // namespace sluice::http
