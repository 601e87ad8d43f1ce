// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM and SIGINT: what is open ends, what is new is refused, the process leaves in time.
#include <csignal>
#include <future>

#include "serve/process.hpp"
#include "support/serve_fixture.hpp"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using serve::serve_result;

const std::string ask_stream = R"({"prompt":"a","stream":true})";

class serve_drain : public ::testing::Test {
 protected:
  void begin(std::chrono::milliseconds shutdown_timeout) {
    serve::add_endpoints(routes, api);
    server.open("127.0.0.1", 0);
    port = server.port();
    ended = std::async(std::launch::async, [this, shutdown_timeout] {
      return serve::serve_until_signalled(loop, server, api, shutdown_timeout, [] {});
    });
    EXPECT_EQ(ask(get("/health")).status, 200);
  }

  http_answer ask(const std::string& text) {
    loopback_client client{port};
    client.send(text);
    return client.read_answer();
  }

  serve_result result() {
    if (ended.wait_for(20s) != std::future_status::ready) throw std::runtime_error{"still serving"};
    return ended.get();
  }

  fake_runtime engine;
  http::loop loop;
  http::router routes;
  http::server server{loop, routes, http::limits{}};
  serve::service api{loop, engine, std::make_shared<letter_tokenizer>(), {}};
  std::uint16_t port = 0;
  std::future<serve_result> ended;
};

TEST_F(serve_drain, open_streams_run_to_their_end) {
  begin(30s);
  loopback_client client{port};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  asked.say("before", {1});
  client.read_until("before");
  std::raise(SIGTERM);
  ASSERT_TRUE(engine.wait_for_drain());
  EXPECT_EQ(ask(get("/health")).status, 503);
  const auto refused = ask(post("/v1/completions", ask_stream));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("Retry-After"));
  asked.say("after", {2});
  asked.finish(finish_reason::length);
  const auto rest = client.read_all();
  EXPECT_NE(rest.find("after"), std::string::npos);
  EXPECT_NE(rest.find("data: [DONE]"), std::string::npos);
  EXPECT_EQ(result(), serve_result::clean);
}

TEST_F(serve_drain, an_idle_server_ends_at_once) {
  begin(30s);
  loopback_client idle{port};
  std::raise(SIGINT);
  EXPECT_EQ(result(), serve_result::clean);
  EXPECT_TRUE(idle.is_closed());
}

TEST_F(serve_drain, the_timeout_aborts_what_is_open) {
  begin(100ms);
  loopback_client client{port};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  std::raise(SIGTERM);
  EXPECT_TRUE(engine.wait_for_abort(asked.id));
  EXPECT_NE(client.read_all().find(R"("finish_reason":"abort")"), std::string::npos);
  EXPECT_EQ(result(), serve_result::clean);
}

TEST_F(serve_drain, a_second_signal_aborts_what_is_open) {
  begin(1h);
  loopback_client client{port};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  std::raise(SIGTERM);
  ASSERT_TRUE(engine.wait_for_drain());
  std::raise(SIGTERM);
  EXPECT_TRUE(engine.wait_for_abort(asked.id));
  EXPECT_EQ(result(), serve_result::clean);
}

TEST_F(serve_drain, a_mix_of_clients_does_not_hold_it) {
  begin(100ms);
  engine.finishes_aborted = true;
  std::vector<std::unique_ptr<loopback_client>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<loopback_client>(port));
    clients.back()->send(post("/v1/completions", ask_stream));
    const auto asked = engine.next_submission();
    if (i >= 3) continue;
    clients.back()->close();
    EXPECT_TRUE(engine.wait_for_abort(asked.id));
  }
  loopback_client half{port};
  half.send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n{");
  std::raise(SIGTERM);
  EXPECT_EQ(result(), serve_result::clean);
}

TEST_F(serve_drain, what_the_runtime_cannot_settle_is_reported) {
  engine.stop_error = error{errc::transfers_unsettled, "transfers 3, 4"};
  begin(30s);
  std::raise(SIGTERM);
  EXPECT_EQ(result(), serve_result::transfers_unsettled);
}

}  // namespace
}  // namespace sluice::testing
