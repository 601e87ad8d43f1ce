// SPDX-License-Identifier: Apache-2.0
//
// Clients that go away, do not read, or are many.
#include <chrono>

#include "support/serve_fixture.hpp"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

const std::string ask_stream = R"({"prompt":"a","stream":true})";
const std::string ask_plain = R"({"prompt":"a"})";

class serve_clients : public serve_fixture {};

TEST_F(serve_clients, a_client_that_leaves_a_silent_stream_aborts_its_request) {
  start();
  loopback_client client{port};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  client.read_until("\r\n\r\n");
  client.close();
  EXPECT_TRUE(engine.wait_for_abort(asked.id)) << "nothing was written in between";
  EXPECT_EQ(ask(get("/health")).status, 200);
}

TEST_F(serve_clients, a_client_that_resets_before_the_answer_aborts_its_request) {
  start();
  loopback_client client{port};
  client.send(post("/v1/completions", ask_plain));
  const auto asked = engine.next_submission();
  client.reset();
  EXPECT_TRUE(engine.wait_for_abort(asked.id));
}

TEST_F(serve_clients, a_client_that_pipelined_and_left_aborts_its_request) {
  http::limits bounds;
  bounds.max_pipelined_bytes = 1000;
  start(bounds);
  loopback_client client{port};
  client.send(post("/v1/completions", ask_plain) + get("/version") +
              get("/version", "X: " + std::string(20'000, 'x') + "\r\n"));
  const auto asked = engine.next_submission();
  client.close();
  EXPECT_TRUE(engine.wait_for_abort(asked.id)) << "although unread input stands before the end";
}

TEST_F(serve_clients, the_abort_hits_only_the_one_that_left) {
  start();
  loopback_client leaving{port}, staying{port};
  leaving.send(post("/v1/completions", ask_stream));
  const auto first = engine.next_submission();
  staying.send(post("/v1/completions", ask_stream));
  const auto second = engine.next_submission();
  leaving.close();
  ASSERT_TRUE(engine.wait_for_abort(first.id));
  second.say("still here", {1});
  second.finish(finish_reason::stop);
  EXPECT_NE(staying.read_answer().body.find("still here"), std::string::npos);
}

TEST_F(serve_clients, output_after_the_client_left_is_dropped) {
  engine.finishes_aborted = false;
  start();
  loopback_client client{port};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  client.close();
  ASSERT_TRUE(engine.wait_for_abort(asked.id));
  asked.say("late", {1});
  asked.finish(finish_reason::abort);
  std::size_t num_active = 1;
  while (num_active != 0) on_loop([&] { num_active = api->active.size(); });
  EXPECT_EQ(num_connections(), 0u);
}

TEST_F(serve_clients, a_reader_that_does_not_read_loses_its_request) {
  http::limits bounds;
  bounds.max_output_bytes = 100'000;
  bounds.send_buffer_bytes = 4096;
  start(bounds);
  loopback_client client{port, 4096};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  for (int i = 0; i < 200; ++i) asked.say(std::string(4000, 'x'), {1});
  EXPECT_TRUE(engine.wait_for_abort(asked.id));
  EXPECT_EQ(num_connections(), 0u);
}

TEST_F(serve_clients, a_reader_that_stalls_loses_its_request) {
  http::limits bounds;
  bounds.stall_timeout = 100ms;
  bounds.send_buffer_bytes = 4096;
  start(bounds);
  loopback_client client{port, 4096};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  asked.say(std::string(500'000, 'x'), {1});
  EXPECT_TRUE(engine.wait_for_abort(asked.id));
}

TEST_F(serve_clients, a_slow_reader_within_the_bound_gets_everything) {
  http::limits bounds;
  bounds.send_buffer_bytes = 4096;
  start(bounds);
  loopback_client client{port, 4096};
  client.send(post("/v1/completions", ask_stream));
  const auto asked = engine.next_submission();
  const std::string text(300'000, 'x');
  asked.say(text, {1});
  asked.finish(finish_reason::stop);
  EXPECT_NE(client.read_answer().body.find(text), std::string::npos);
}

TEST_F(serve_clients, a_step_of_many_streams_reaches_all) {
  start();
  constexpr int count = 200;
  std::vector<std::unique_ptr<loopback_client>> clients;
  std::vector<fake_runtime::submission> asked;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<loopback_client>(port));
    clients.back()->send(post("/v1/completions", ask_stream));
    asked.push_back(engine.next_submission());
  }
  for (int step = 0; step < 20; ++step) {
    for (const auto& request : asked) request.say("<" + std::to_string(step) + ">", {step});
  }
  for (const auto& request : asked) request.finish(finish_reason::length);
  for (const auto& client : clients) {
    const auto body = client->read_answer().body;
    std::size_t at = 0;
    for (int step = 0; step < 20; ++step) {
      at = body.find("<" + std::to_string(step) + ">", at);
      ASSERT_NE(at, std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sluice::testing
