// SPDX-License-Identifier: Apache-2.0
//
// HTTP on the wire: framing, limits, timeouts.
#include <chrono>

#include "support/serve_fixture.hpp"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

const std::string ask_stream = R"({"prompt":"a","stream":true})";
const std::string ask_plain = R"({"prompt":"a"})";

class serve_connection : public serve_fixture {};

TEST_F(serve_connection, stays_open_between_requests) {
  start();
  loopback_client client{port};
  for (int i = 0; i < 3; ++i) {
    client.send(get("/version"));
    EXPECT_EQ(client.read_answer().status, 200);
  }
  client.send(get("/version", "Connection: close\r\n"));
  EXPECT_TRUE(client.read_answer().has("Connection: close"));
  EXPECT_TRUE(client.is_closed());
}

TEST_F(serve_connection, also_after_a_stream) {
  start();
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop); };
  loopback_client client{port};
  client.send(post("/v1/completions", ask_stream));
  EXPECT_TRUE(client.read_answer().has("Transfer-Encoding: chunked"));
  client.send(get("/version"));
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(serve_connection, pipelined_requests_are_answered_in_order) {
  start();
  loopback_client client{port};
  client.send(get("/version") + post("/v1/completions", ask_plain) + get("/v1/models") + get("/nowhere"));
  EXPECT_TRUE(client.read_answer().json().contains("version"));
  const auto asked = engine.next_submission();
  EXPECT_FALSE(client.has_input(50)) << "a later answer does not overtake";
  asked.finish(finish_reason::stop, {}, {}, "second");
  EXPECT_NE(client.read_answer().body.find("second"), std::string::npos);
  EXPECT_TRUE(client.read_answer().json().contains("data"));
  EXPECT_EQ(client.read_answer().status, 404);
}

TEST_F(serve_connection, many_pipelined_requests_do_not_nest) {
  start();
  constexpr int count = 2000;
  loopback_client client{port};
  std::thread sender{[&client] {
    for (int i = 0; i < count; ++i) client.send(get("/version"));
  }};
  for (int i = 0; i < count; ++i) EXPECT_EQ(client.read_answer().status, 200);
  sender.join();
}

TEST_F(serve_connection, a_request_may_come_byte_by_byte) {
  start();
  loopback_client client{port};
  for (const char c : get("/version")) client.send({&c, 1});
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(serve_connection, chunked_bodies) {
  start();
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop); };
  loopback_client client{port};
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  client.send(head + "5\r\n{\"pro\r\n");
  client.send("9\r\nmpt\":\"a\"}\r\n0\r\n\r\n" + get("/version"));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_TRUE(client.read_answer().json().contains("version"));
}

TEST_F(serve_connection, http_1_0) {
  start();
  loopback_client closing{port};
  closing.send("GET /version HTTP/1.0\r\n\r\n");
  EXPECT_EQ(closing.read_answer().status, 200);
  EXPECT_TRUE(closing.is_closed());
  loopback_client keeping{port};
  keeping.send("GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(keeping.read_answer().has("Connection: keep-alive"));
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop); };
  keeping.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(ask_stream.size()) + "\r\n\r\n" +
               ask_stream);
  const auto stream = keeping.read_answer();  // to the end of the connection
  EXPECT_FALSE(stream.has("Transfer-Encoding"));
  EXPECT_NE(stream.body.find("data: [DONE]"), std::string::npos);
}

struct bad_message {
  const char* name;
  std::string text;
  int status;
};

void PrintTo(const bad_message& given, std::ostream* out) { *out << given.name; }

class serve_bad_message : public serve_fixture, public ::testing::WithParamInterface<bad_message> {};

TEST_P(serve_bad_message, is_answered_and_the_connection_closed) {
  http::limits bounds;
  bounds.max_body_bytes = 1000;
  start(bounds);
  loopback_client client{port};
  client.send(GetParam().text);
  const auto answer = client.read_answer();
  EXPECT_EQ(answer.status, GetParam().status) << answer.body;
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_TRUE(answer.json()["error"]["message"].is_string());
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(ask(get("/health")).status, 200);
  EXPECT_EQ(engine.num_submissions(), 0u);
}

std::string completion_head(const std::string& fields) {
  return "POST /v1/completions HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n";
}

INSTANTIATE_TEST_SUITE_P(
    all, serve_bad_message,
    ::testing::Values(
        bad_message{"garbage", "hello\r\n\r\n", 400},
        bad_message{"tls_hello", std::string{"\x16\x03\x01\x02\x00\x01\r\n\r\n", 10}, 400},
        bad_message{"length_and_coding",
                    completion_head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
        bad_message{"coding_and_length",
                    completion_head("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n", 400},
        bad_message{"two_lengths", completion_head("Content-Length: 5\r\nContent-Length: 6\r\n") + "hello", 400},
        bad_message{"same_length_twice", completion_head("Content-Length: 5\r\nContent-Length: 5\r\n") + "hello", 400},
        bad_message{"negative_length", completion_head("Content-Length: -5\r\n"), 400},
        bad_message{"unknown_coding", completion_head("Transfer-Encoding: gzip\r\n"), 400},
        bad_message{"coding_chain", completion_head("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", 400},
        bad_message{"coding_in_1_0", "POST /v1/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                    400},
        bad_message{"bad_chunk", completion_head("Transfer-Encoding: chunked\r\n") + "zz\r\n", 400},
        bad_message{"no_host", "GET /health HTTP/1.1\r\n\r\n", 400},
        bad_message{"space_before_colon", "GET /health HTTP/1.1\r\nHost : t\r\n\r\n", 400},
        bad_message{"other_expectation", completion_head("Expect: cookies\r\n"), 417},
        bad_message{"http_2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        bad_message{"absolute_target", "GET http://t/health HTTP/1.1\r\nHost: t\r\n\r\n", 400},
        bad_message{"large_head", "GET /health HTTP/1.1\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n", 431},
        bad_message{"large_chunk_extension",
                    completion_head("Transfer-Encoding: chunked\r\n") + "1;" + std::string(40'000, 'x'), 431},
        bad_message{"large_trailer",
                    completion_head("Transfer-Encoding: chunked\r\n") + "0\r\nX: " + std::string(40'000, 'x'), 431},
        bad_message{"large_body", post("/v1/completions", std::string(300'000, ' ')), 413},
        bad_message{"large_chunks",
                    completion_head("Transfer-Encoding: chunked\r\n") + "fffff\r\n" + std::string(300'000, ' '), 413}),
    [](const auto& entry) { return std::string{entry.param.name}; });

TEST_F(serve_connection, a_client_that_waits_for_100_continue_gets_it) {
  start();
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop); };
  loopback_client client{port};
  const std::string body = R"({"prompt":"a"})";
  client.send(completion_head("Expect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) + "\r\n"));
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(body);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(serve_connection, a_body_that_will_be_refused_is_not_asked_for) {
  start();
  loopback_client unknown{port};
  unknown.send("POST /nowhere HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n");
  EXPECT_EQ(unknown.read_answer().status, 404);
  EXPECT_TRUE(unknown.is_closed());
  loopback_client large{port};
  large.send(completion_head("Expect: 100-continue\r\nContent-Length: 999999999\r\n"));
  EXPECT_EQ(large.read_answer().status, 413);
}

TEST_F(serve_connection, slow_requests_time_out) {
  http::limits bounds;
  bounds.head_timeout = bounds.body_timeout = bounds.idle_timeout = 100ms;
  start(bounds);
  loopback_client head{port};
  head.send("GET /health HT");
  EXPECT_EQ(head.read_answer().status, 408);
  loopback_client body{port};
  body.send(completion_head("Content-Length: 10\r\n") + "{");
  EXPECT_EQ(body.read_answer().status, 408);
  loopback_client idle{port};
  EXPECT_EQ(idle.read_all(), "") << "an idle connection is closed without a word";
}

// Guards against a client that keeps the head open by sending a byte now and then.
TEST_F(serve_connection, a_dripping_head_times_out_too) {
  http::limits bounds;
  bounds.head_timeout = 150ms;
  start(bounds);
  loopback_client client{port};
  const auto begin = std::chrono::steady_clock::now();
  client.send("GET /health HTTP/1.1\r\n");
  while (!client.has_input(20) && std::chrono::steady_clock::now() - begin < 5s) client.send("X: y\r\n");
  EXPECT_EQ(client.read_answer().status, 408);
}

TEST_F(serve_connection, connections_beyond_the_limit_wait) {
  http::limits bounds;
  bounds.max_connections = 2;
  start(bounds);
  auto first = std::make_unique<loopback_client>(port);
  loopback_client second{port};
  first->send(get("/version"));
  second.send(get("/version"));
  EXPECT_EQ(first->read_answer().status, 200);
  EXPECT_EQ(second.read_answer().status, 200);
  loopback_client third{port};
  third.send(get("/version"));
  EXPECT_FALSE(third.has_input(50));
  first.reset();
  EXPECT_EQ(third.read_answer().status, 200);
}

TEST_F(serve_connection, a_port_in_use_says_which) {
  start();
  http::server other{loop, routes, {}};
  try {
    other.open("127.0.0.1", port);
    FAIL() << "the port is taken";
  } catch (const http::listen_error& failure) {
    EXPECT_EQ(failure.what(), "cannot listen on 127.0.0.1:" + std::to_string(port) + ": Address already in use");
  }
}

}  // namespace
}  // namespace sluice::testing
