// SPDX-License-Identifier: Apache-2.0
//
// A bare TCP client for tests: sends what it is told to, byte for byte, and reads answers with a bounded wait.
#pragma once

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace sluice::testing {

struct http_answer {
  int status = 0;
  std::string head;  ///< status line and fields, without the empty line
  std::string body;  ///< chunks joined

  nlohmann::json json() const { return nlohmann::json::parse(body); }
  bool has(std::string_view field) const { return head.find(field) != std::string::npos; }
};

class loopback_client {
 public:
  static constexpr int patience_ms = 10'000;

  explicit loopback_client(std::uint16_t port, int receive_buffer = 0) : socket_{::socket(AF_INET, SOCK_STREAM, 0)} {
    if (receive_buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error{"cannot connect"};
    }
  }
  ~loopback_client() { close(); }
  loopback_client(const loopback_client&) = delete;
  loopback_client& operator=(const loopback_client&) = delete;

  /// Stops early when the server has closed.
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  /// Closes with a reset instead of a farewell.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }

  /// Reads until `mark` has come; the text up to its end.
  std::string read_until(std::string_view mark) {
    for (;;) {
      if (const auto at = input_.find(mark); at != input_.npos) return take(at + mark.size());
      if (!fill()) throw std::runtime_error{"closed before '" + std::string{mark} + "', got: " + input_};
    }
  }

  /// Reads to the end of the connection.
  std::string read_all() {
    while (fill()) continue;
    return take(input_.size());
  }

  http_answer read_answer(bool has_body = true) {
    http_answer answer;
    answer.head = read_until("\r\n\r\n");
    answer.status = std::stoi(answer.head.substr(9, 3));
    if (!has_body) return answer;
    if (const auto at = answer.head.find("Content-Length: "); at != std::string::npos) {
      const auto length = std::stoul(answer.head.substr(at + 16));
      while (input_.size() < length && fill()) continue;
      answer.body = take(length);
    } else if (answer.has("Transfer-Encoding: chunked")) {
      while (auto chunk = read_chunk()) answer.body += *chunk;
    } else {
      answer.body = read_all();
    }
    return answer;
  }

  /// One chunk; none for the last.
  std::optional<std::string> read_chunk() {
    const auto length = std::stoul(read_until("\r\n"), nullptr, 16);
    while (input_.size() < length + 2 && fill()) continue;
    auto chunk = take(length + 2);
    if (length == 0) return std::nullopt;
    chunk.resize(length);
    return chunk;
  }

  /// True once the server has closed, within the patience.
  bool is_closed() {
    while (fill()) continue;
    return true;
  }

  /// Whether bytes or an end arrive within `wait_ms`.
  bool has_input(int wait_ms) {
    pollfd entry{socket_, POLLIN, 0};
    return !input_.empty() || ::poll(&entry, 1, wait_ms) > 0;
  }

 private:
  bool fill() {
    pollfd entry{socket_, POLLIN, 0};
    if (::poll(&entry, 1, patience_ms) <= 0) throw std::runtime_error{"nothing came, got so far: " + input_};
    char bytes[16384];
    const auto num_read = ::recv(socket_, bytes, sizeof bytes, 0);
    if (num_read <= 0) return false;
    input_.append(bytes, static_cast<std::size_t>(num_read));
    return true;
  }

  std::string take(std::size_t length) {
    auto front = input_.substr(0, length);
    input_.erase(0, front.size());
    return front;
  }

  int socket_;
  std::string input_;
};

}  // namespace sluice::testing
