// SPDX-License-Identifier: Apache-2.0
//
// POST /v1/completions that go well: shapes, fields, streams.
#include "support/serve_fixture.hpp"

namespace sluice::testing {
namespace {

using nlohmann::json;

class serve_completion : public serve_fixture {
 protected:
  void SetUp() override { start(); }

  static constexpr request_usage usage{10, 3, 4, 2, 1};

  /// The events of a stream, without "data: ".
  static std::vector<std::string> events(const std::string& body) {
    std::vector<std::string> list;
    for (std::size_t at = 0; at < body.size();) {
      const auto end = body.find("\n\n", at);
      EXPECT_EQ(body.substr(at, 6), "data: ");
      list.push_back(body.substr(at + 6, end - at - 6));
      at = end + 2;
    }
    return list;
  }
};

TEST_F(serve_completion, answers_in_the_openai_shape) {
  loopback_client client{port};
  client.send(post("/v1/completions", R"({"model":"tiny","prompt":"ab","max_tokens":3})"));
  const auto asked = engine.next_submission();
  EXPECT_EQ(asked.request.prompt, (std::vector<token_id>{'a', 'b'}));
  EXPECT_EQ(asked.request.max_tokens, 3u);
  asked.say("x", {1});
  asked.say("y", {2, 3});
  asked.finish(finish_reason::length, usage, {}, "z");
  const auto answer = client.read_answer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("Content-Type: application/json"));
  const auto body = answer.json();
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["id"].get<std::string>().substr(0, 5), "cmpl-");
  EXPECT_GT(body["created"].get<long>(), 1'600'000'000);
  EXPECT_EQ(body["model"], "tiny");
  EXPECT_TRUE(body["system_fingerprint"].is_string());
  EXPECT_EQ(body["choices"], json::parse(R"([{"index":0,"text":"xyz","logprobs":null,"finish_reason":"length"}])"));
  EXPECT_EQ(body["usage"], json::parse(R"({"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,
      "prompt_tokens_details":{"cached_tokens":6,"tiers":{"device":4,"host":2}}})"));
}

TEST_F(serve_completion, every_field_reaches_the_runtime) {
  loopback_client client{port};
  client.send(post("/v1/completions", R"({"model":"tiny","prompt":[7,8,9],"max_tokens":5,"temperature":0.5,"seed":-3,
      "stream":false,"ignore_eos":true,"stop":["a","bc"],"cache_salt":"s","request_id":"me","return_token_ids":true,
      "priority":-7,"kv_transfer_params":{"max_offload_tokens":0,"max_load_tokens":32}})"));
  const auto asked = engine.next_submission();
  EXPECT_EQ(asked.request.prompt, (std::vector<token_id>{7, 8, 9}));
  EXPECT_EQ(asked.request.sampling.temperature, 0.5);
  EXPECT_EQ(asked.request.sampling.seed, static_cast<std::uint64_t>(-3));
  EXPECT_TRUE(asked.request.ignore_eos);
  EXPECT_EQ(asked.request.stop, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(asked.request.cache_salt, "s");
  EXPECT_EQ(asked.request.label, "me");
  EXPECT_EQ(asked.request.priority, -7);
  EXPECT_EQ(asked.request.max_offload_tokens, 0u);
  EXPECT_EQ(asked.request.max_load_tokens, 32u);
  asked.say("x", {1, 2});
  asked.say("", {3, 4});  // overshoot of a stop string is not counted
  asked.finish(finish_reason::stop, usage);
  const auto body = client.read_answer().json();
  EXPECT_EQ(body["id"], "cmpl-me");
  EXPECT_EQ(body["choices"][0]["token_ids"], json::parse("[1,2,3]"));
}

TEST_F(serve_completion, defaults_are_those_of_the_api) {
  loopback_client client{port};
  client.send(post("/v1/completions", R"({"prompt":["abc"]})"));
  const auto first = engine.next_submission();
  EXPECT_EQ(first.request.max_tokens, 16u);
  EXPECT_EQ(first.request.sampling.temperature, 1.0);
  EXPECT_FALSE(first.request.ignore_eos);
  EXPECT_EQ(first.request.priority, 0);
  EXPECT_EQ(first.request.max_offload_tokens, std::nullopt);
  EXPECT_EQ(first.request.max_load_tokens, std::nullopt);
  EXPECT_TRUE(first.request.read_prefix_cache);
  first.finish(finish_reason::stop);
  EXPECT_EQ(client.read_answer().status, 200);
  client.send(post("/v1/completions", json{{"prompt", std::string(127, 'x')}}.dump()));
  const auto second = engine.next_submission();
  EXPECT_EQ(second.request.max_tokens, 1u) << "the default shrinks to what the context holds";
  EXPECT_NE(second.request.sampling.seed, first.request.sampling.seed);
  second.finish(finish_reason::stop);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(serve_completion, null_and_neutral_values_count_as_absent) {
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop); };
  const auto answer = complete(R"({"prompt":"a","model":null,"max_tokens":null,"temperature":null,"seed":null,
      "stream":null,"stream_options":null,"ignore_eos":null,"stop":null,"cache_salt":null,"request_id":null,
      "return_token_ids":null,"n":1,"best_of":1,"echo":false,"logprobs":null,"top_logprobs":null,"top_p":1.0,
      "top_k":-1,"min_p":0,"presence_penalty":0.0,"frequency_penalty":0,"repetition_penalty":1,"logit_bias":{},
      "user":null,"min_tokens":0,"stop_token_ids":[],"include_stop_str_in_output":false,"priority":0,
      "kv_transfer_params":null,"suffix":null,"messages":null,"max_completion_tokens":null})");
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST_F(serve_completion, streams_events_with_a_usage_chunk) {
  loopback_client client{port};
  client.send(post("/v1/completions",
                   R"({"prompt":"a","stream":true,"stream_options":{"include_usage":true},"return_token_ids":true})"));
  const auto asked = engine.next_submission();
  asked.say("x", {1});
  asked.say("", {2});
  asked.say("\xc3\xa9", {3});
  asked.finish(finish_reason::length, usage, {}, "tail");
  const auto answer = client.read_answer();
  EXPECT_TRUE(answer.has("Content-Type: text/event-stream"));
  const auto list = events(answer.body);
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(list.back(), "[DONE]");
  const auto choice = [&](std::size_t i) { return json::parse(list[i])["choices"][0]; };
  EXPECT_EQ(choice(0), json::parse(R"({"index":0,"text":"x","logprobs":null,"finish_reason":null,"token_ids":[1]})"));
  EXPECT_EQ(choice(1)["token_ids"], json::parse("[2]"));
  EXPECT_EQ(choice(2)["text"], "\xc3\xa9");
  EXPECT_EQ(choice(3)["text"], "tail");
  EXPECT_EQ(choice(3)["finish_reason"], "length");
  const auto last = json::parse(list[4]);
  EXPECT_EQ(last["choices"], json::array());
  EXPECT_EQ(last["usage"]["completion_tokens"], 3);
  EXPECT_EQ(last["id"], json::parse(list[0])["id"]);
}

TEST_F(serve_completion, a_plain_stream_has_neither_usage_nor_tokens_nor_empty_chunks) {
  loopback_client client{port};
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  const auto asked = engine.next_submission();
  asked.say("", {1});
  asked.say("xy", {2});
  asked.finish(finish_reason::stop, usage);
  const auto list = events(client.read_answer().body);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_FALSE(json::parse(list[0]).contains("usage"));
  EXPECT_FALSE(json::parse(list[0])["choices"][0].contains("token_ids"));
  EXPECT_EQ(list[2], "[DONE]");
}

TEST_F(serve_completion, output_arrives_while_the_request_runs) {
  loopback_client client{port};
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  const auto asked = engine.next_submission();
  EXPECT_NE(client.read_until("\r\n\r\n").find("200 OK"), std::string::npos) << "the head comes before any token";
  asked.say("one", {1});
  EXPECT_NE(client.read_until("\n\n").find("one"), std::string::npos);
  asked.finish(finish_reason::stop);
  client.read_until("data: [DONE]");
}

TEST_F(serve_completion, a_fault_in_a_stream_is_an_error_event_and_the_end) {
  loopback_client client{port};
  client.send(post("/v1/completions", R"({"prompt":"a","stream":true})"));
  const auto asked = engine.next_submission();
  asked.say("x", {1});
  asked.finish(finish_reason::error, {}, {errc::model_failed, "it broke"});
  const auto list = events(client.read_answer().body);
  ASSERT_EQ(list.size(), 2u);
  const auto failure = json::parse(list[1])["error"];
  EXPECT_EQ(failure["code"], "internal_error");
  EXPECT_NE(failure["message"].get<std::string>().find("it broke"), std::string::npos);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(serve_completion, a_fault_without_a_stream_is_a_500_with_an_id) {
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::error, {}, {errc::device_failed, "boom"}); };
  const auto answer = complete(R"({"prompt":"a"})");
  EXPECT_EQ(answer.status, 500);
  const auto message = answer.json()["error"]["message"].get<std::string>();
  EXPECT_EQ(message.find("internal fault fault-"), 0u);
  EXPECT_EQ(ask(get("/health")).status, 200) << "the server goes on";
}

TEST_F(serve_completion, an_abort_by_the_engine_is_a_finish_reason) {
  engine.on_submit = [](const auto& asked) {
    asked.say("part", {1});
    asked.finish(finish_reason::abort);
  };
  EXPECT_EQ(complete(R"({"prompt":"a"})").json()["choices"][0]["finish_reason"], "abort");
}

TEST_F(serve_completion, equal_client_ids_are_labels_only) {
  const auto body = R"({"prompt":"a","request_id":"same"})";
  loopback_client one{port}, two{port};
  one.send(post("/v1/completions", body));
  const auto first = engine.next_submission();
  two.send(post("/v1/completions", body));
  const auto second = engine.next_submission();
  second.finish(finish_reason::stop, {}, {}, "second");
  first.finish(finish_reason::stop, {}, {}, "first");
  EXPECT_EQ(one.read_answer().json()["choices"][0]["text"], "first");
  EXPECT_EQ(two.read_answer().json()["choices"][0]["text"], "second");
}

TEST_F(serve_completion, the_request_id_field_is_echoed_and_labels_the_request) {
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop, {}, {}, asked.request.label); };
  const auto answer = ask(post("/v1/completions", R"({"prompt":"a"})", "x-request-id: mine-1\r\n"));
  EXPECT_TRUE(answer.has("X-Request-Id: mine-1"));
  EXPECT_EQ(answer.json()["choices"][0]["text"], "mine-1");
  EXPECT_TRUE(ask(get("/nowhere", "X-Request-Id: mine-2\r\n")).has("X-Request-Id: mine-2"));
}

TEST_F(serve_completion, a_long_label_in_the_header_is_refused_like_one_in_the_field) {
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop); };
  const auto header = [](int size) { return "X-Request-Id: " + std::string(size, 'x') + "\r\n"; };
  EXPECT_EQ(ask(post("/v1/completions", R"({"prompt":"a"})", header(256))).status, 200);
  const auto answer = ask(post("/v1/completions", R"({"prompt":"a"})", header(257)));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.json()["error"]["param"], "X-Request-Id");
}

TEST_F(serve_completion, text_that_is_not_utf8_cannot_break_an_answer) {
  engine.on_submit = [](const auto& asked) { asked.finish(finish_reason::stop, {}, {}, "a\xff"); };
  const auto answer = complete(R"({"prompt":"a"})");
  EXPECT_EQ(answer.json()["choices"][0]["text"], "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace sluice::testing
