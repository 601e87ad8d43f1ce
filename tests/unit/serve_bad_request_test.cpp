// SPDX-License-Identifier: Apache-2.0
//
// One clear error for each bad request, and the server goes on.
#include "support/serve_fixture.hpp"

namespace sluice::testing {
namespace {

struct bad_body {
  const char* name;
  std::string body;
  int status;
  const char* param;    ///< null: none
  const char* mention;  ///< part of the message
};

void PrintTo(const bad_body& given, std::ostream* out) { *out << given.name; }

std::string repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

const std::vector<bad_body>& bad_bodies() {
  static const std::vector<bad_body> all{
      {"empty_body", "", 400, nullptr, "not valid JSON"},
      {"cut_off", R"({"prompt": )", 400, nullptr, "column 12"},
      {"second_line", "{\n  \"prompt\" \"a\"}", 400, nullptr, "line 2, column 14"},
      {"trailing_text", R"({"prompt":"a"} x)", 400, nullptr, "column 16"},
      {"not_an_object", "[1]", 400, nullptr, "must be a JSON object, got [1]"},
      {"duplicate", R"({"prompt":"a","prompt":"b"})", 400, nullptr, R"("prompt" is given twice)"},
      {"deep", repeat("[", 100'000), 400, nullptr, "deeper than 32"},
      {"deep_object", R"({"prompt":)" + repeat(R"({"a":)", 40), 400, nullptr, "deeper than 32"},
      {"not_utf8", "{\"prompt\":\"a\xff\"}", 400, nullptr, "UTF-8"},
      {"half_surrogate", R"({"prompt":"\ud800"})", 400, nullptr, "surrogate"},
      {"nan", R"({"prompt":"a","temperature":NaN})", 400, nullptr, "column 29"},
      {"overflow", R"({"prompt":"a","temperature":1e999})", 400, nullptr, "1e999"},
      {"no_prompt", R"({"model":"tiny"})", 400, "prompt", "missing"},
      {"null_prompt", R"({"prompt":null})", 400, "prompt", "missing"},
      {"empty_prompt", R"({"prompt":""})", 400, "prompt", "empty"},
      {"empty_tokens", R"({"prompt":[]})", 400, "prompt", "empty"},
      {"number_prompt", R"({"prompt":7})", 400, "prompt", "got 7"},
      {"two_prompts", R"({"prompt":["a","b"]})", 400, "prompt", "an array with one string"},
      {"nested_prompt", R"({"prompt":[[1,2]]})", 400, "prompt", "got [[1,2]]"},
      {"mixed_prompt", R"({"prompt":[1,"a"]})", 400, "prompt", "got"},
      {"float_token", R"({"prompt":[1.5]})", 400, "prompt", "1.5"},
      {"negative_token", R"({"prompt":[3,-1]})", 400, "prompt[1]", "got -1"},
      {"unknown_token", R"({"prompt":[3,256]})", 400, "prompt[1]", "0 to 255"},
      {"huge_token", R"({"prompt":[99999999999999999999999]})", 400, "prompt", "got"},
      {"too_long", R"({"prompt":")" + repeat("x", 128) + R"("})", 400, "prompt", "128 tokens"},
      {"far_too_long", R"({"prompt":")" + repeat("x", 300) + R"("})", 400, "prompt", "300 tokens"},
      {"both_too_long", R"({"prompt":"abc","max_tokens":126})", 400, "max_tokens", "3 tokens and max_tokens is 126"},
      {"zero_tokens", R"({"prompt":"a","max_tokens":0})", 400, "max_tokens", "got 0, allowed: an integer from 1"},
      {"negative_count", R"({"prompt":"a","max_tokens":-5})", 400, "max_tokens", "got -5"},
      {"huge_count", R"({"prompt":"a","max_tokens":18446744073709551615})", 400, "max_tokens", "18446744073709551615"},
      {"float_count", R"({"prompt":"a","max_tokens":1.5})", 400, "max_tokens", "got 1.5"},
      {"bool_count", R"({"prompt":"a","max_tokens":true})", 400, "max_tokens", "got true"},
      {"text_count", R"({"prompt":"a","max_tokens":"5"})", 400, "max_tokens", R"(got "5")"},
      {"hot", R"({"prompt":"a","temperature":2.5})", 400, "temperature", "from 0.0 to 2.0"},
      {"cold", R"({"prompt":"a","temperature":-0.1})", 400, "temperature", "got -0.1"},
      {"text_temperature", R"({"prompt":"a","temperature":"x"})", 400, "temperature", "a number"},
      {"float_seed", R"({"prompt":"a","seed":1.5})", 400, "seed", "an integer"},
      {"text_stream", R"({"prompt":"a","stream":"yes"})", 400, "stream", "true, false"},
      {"options_type", R"({"prompt":"a","stream":true,"stream_options":1})", 400, "stream_options", "an object"},
      {"options_alone", R"({"prompt":"a","stream_options":{}})", 400, "stream_options", "stream true"},
      {"options_unknown", R"({"prompt":"a","stream":true,"stream_options":{"x":1}})", 400, "stream_options.x",
       "unknown"},
      {"options_unbuilt", R"({"prompt":"a","stream":true,"stream_options":{"continuous_usage_stats":true}})", 400,
       "stream_options.continuous_usage_stats", "not built"},
      {"ignore_eos_type", R"({"prompt":"a","ignore_eos":1})", 400, "ignore_eos", "true, false"},
      {"stop_type", R"({"prompt":"a","stop":5})", 400, "stop", "got 5"},
      {"stop_empty", R"({"prompt":"a","stop":[""]})", 400, "stop", "non-empty"},
      {"stop_many", R"({"prompt":"a","stop":[)" + repeat(R"("x",)", 16) + R"("x"]})", 400, "stop", "up to 16"},
      {"salt_empty", R"({"prompt":"a","cache_salt":""})", 400, "cache_salt", "not empty"},
      {"priority_type", R"({"prompt":"a","priority":"high"})", 400, "priority", R"(got "high", allowed: an integer)"},
      {"priority_range", R"({"prompt":"a","priority":2147483648})", 400, "priority", "2147483648"},
      {"transfer_type", R"({"prompt":"a","kv_transfer_params":5})", 400, "kv_transfer_params", "an object"},
      {"transfer_negative", R"({"prompt":"a","kv_transfer_params":{"max_load_tokens":-1}})", 400,
       "kv_transfer_params.max_load_tokens", "got -1, allowed: an integer from 0"},
      {"transfer_float", R"({"prompt":"a","kv_transfer_params":{"max_offload_tokens":1.5}})", 400,
       "kv_transfer_params.max_offload_tokens", "got 1.5"},
      {"transfer_unknown", R"({"prompt":"a","kv_transfer_params":{"do_remote_decode":true}})", 400,
       "kv_transfer_params.do_remote_decode", "allowed: max_offload_tokens, max_load_tokens"},
      {"label_type", R"({"prompt":"a","request_id":4})", 400, "request_id", "a string"},
      {"label_long", R"({"prompt":"a","request_id":")" + repeat("x", 257) + R"("})", 400, "request_id", "256"},
      {"model_type", R"({"prompt":"a","model":1})", 400, "model", "a string"},
      {"other_model", R"({"prompt":"a","model":"gpt"})", 404, "model", R"("gpt" is not served)"},
      {"unbuilt", R"({"prompt":"a","n":2})", 400, "n", "not built yet: got 2, allowed: null, 1"},
      {"unbuilt_logprobs", R"({"prompt":"a","logprobs":1})", 400, "logprobs", "got 1"},
      {"unbuilt_penalty", R"({"prompt":"a","presence_penalty":0.5})", 400, "presence_penalty", "got 0.5"},
      {"unbuilt_type", R"({"prompt":"a","top_p":"high"})", 400, "top_p", "allowed: null, 1"},
      {"unknown_field", R"({"prompt":"a","promt":"b"})", 400, "promt", R"(unknown field "promt")"},
  };
  return all;
}

class serve_bad_body : public serve_fixture, public ::testing::WithParamInterface<bad_body> {
 protected:
  void SetUp() override { start(); }
};

TEST_P(serve_bad_body, gets_one_clear_error) {
  const auto& given = GetParam();
  loopback_client client{port};
  client.send(post("/v1/completions", given.body));
  const auto answer = client.read_answer();
  EXPECT_EQ(answer.status, given.status) << answer.body;
  const auto failure = answer.json().at("error");
  EXPECT_NE(failure.at("message").get<std::string>().find(given.mention), std::string::npos) << answer.body;
  EXPECT_EQ(failure.at("param"), given.param == nullptr ? nlohmann::json{} : nlohmann::json(given.param))
      << answer.body;
  EXPECT_TRUE(failure.at("code").is_string());
  EXPECT_TRUE(failure.at("type").is_string());
  EXPECT_LT(answer.body.size(), 1000u) << "what was given is not repeated in full";
  EXPECT_EQ(engine.num_submissions(), 0u);
  client.send(get("/health"));
  EXPECT_EQ(client.read_answer().status, 200) << "the connection goes on";
}

INSTANTIATE_TEST_SUITE_P(all, serve_bad_body, ::testing::ValuesIn(bad_bodies()),
                         [](const auto& entry) { return std::string{entry.param.name}; });

struct refusal {
  const char* name;
  error failure;
  int status;
  const char* code;
};

void PrintTo(const refusal& given, std::ostream* out) { *out << given.name; }

class serve_refusal : public serve_fixture, public ::testing::WithParamInterface<refusal> {};

TEST_P(serve_refusal, of_the_runtime_becomes_an_answer) {
  start();
  engine.refuse = [](const generation_request&) { return GetParam().failure; };
  const auto answer = complete(R"({"prompt":"a"})");
  EXPECT_EQ(answer.status, GetParam().status);
  EXPECT_EQ(answer.json()["error"]["code"], GetParam().code);
  EXPECT_EQ(answer.has("Retry-After: "), GetParam().status == 503);
}

INSTANTIATE_TEST_SUITE_P(all, serve_refusal,
                         ::testing::Values(refusal{"empty", {errc::prompt_empty, "e"}, 400, "prompt_empty"},
                                           refusal{
                                               "length", {errc::prompt_too_long, "l"}, 400, "context_length_exceeded"},
                                           refusal{"argument", {errc::invalid_argument, "a"}, 400, "invalid_value"},
                                           refusal{"queue", {errc::queue_full, "q"}, 503, "queue_full"},
                                           refusal{"drain", {errc::shutting_down, "d"}, 503, "shutting_down"},
                                           refusal{"asleep", {errc::asleep, "z"}, 503, "asleep"},
                                           refusal{"failed", {errc::engine_failed, "f"}, 503, "engine_failed"},
                                           refusal{"fault", {errc::invariant_violated, "i"}, 500, "internal_error"}),
                         [](const auto& entry) { return std::string{entry.param.name}; });

class serve_wide_object : public serve_fixture {};

// Guards against quadratic work for an object with very many fields.
TEST_F(serve_wide_object, is_refused_early) {
  start();
  std::string body = "{";
  for (int i = 0; i < 200'000; ++i) body += "\"f" + std::to_string(i) + "\":1,";
  const auto answer = complete(body + R"("prompt":"a"})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("more than 1024 fields"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace sluice::testing
