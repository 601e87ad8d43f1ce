// SPDX-License-Identifier: Apache-2.0
//
// The whole HTTP side of sluice-serve on a loopback port, over a fake runtime.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "http/server.hpp"
#include "serve/service.hpp"
#include "support/fake_runtime.hpp"
#include "support/loopback_client.hpp"

namespace sluice::testing {

inline std::string post(const std::string& target, const std::string& body, const std::string& fields = {}) {
  return "POST " + target + " HTTP/1.1\r\nHost: test\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

inline std::string get(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: test\r\n" + fields + "\r\n";
}

class serve_fixture : public ::testing::Test {
 protected:
  void start(const http::limits& bounds = {}, serve::service_options options = {}) {
    server = std::make_unique<http::server>(loop, routes, bounds);
    api = std::make_unique<serve::service>(loop, engine, std::make_shared<letter_tokenizer>(), std::move(options));
    serve::add_endpoints(routes, *api);
    server->open("127.0.0.1", 0);
    port = server->port();
    loop.post([this] { server->start(); });
    io = std::thread{[this] { loop.run(); }};
  }

  /// Runs `work` on the server's thread and waits for it.
  void on_loop(std::function<void()> work) {
    std::promise<void> done;
    loop.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  std::size_t num_connections() {
    std::size_t count = 0;
    on_loop([&] { count = server->num_connections(); });
    return count;
  }

  http_answer ask(const std::string& text) {
    loopback_client client{port};
    client.send(text);
    return client.read_answer();
  }

  http_answer complete(const std::string& body) { return ask(post("/v1/completions", body)); }

  void TearDown() override {
    if (!io.joinable()) return;
    on_loop([this] { server.reset(); });
    loop.stop();
    io.join();
  }

  fake_runtime engine;
  http::loop loop;
  http::router routes;
  std::unique_ptr<http::server> server;
  std::unique_ptr<serve::service> api;
  std::uint16_t port = 0;
  std::thread io;
};

}  // namespace sluice::testing
