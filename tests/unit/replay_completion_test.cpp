// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "replay/completion.hpp"
#include "replay/engine_client.hpp"
#include "replay/errors.hpp"

namespace sluice::replay {
namespace {

constexpr auto whole_stream =
    R"(data: {"choices":[{"index":0,"text":"a","token_ids":[97],"finish_reason":null}]})"
    "\n\n"
    R"(data: {"choices":[{"index":0,"text":"bc","token_ids":[98,99],"finish_reason":"length"}],"usage":null})"
    "\n\n"
    R"(data: {"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}})"
    "\n\n"
    "data: [DONE]\n\n";

completion_request three_tokens() { return {"tiny", {1, 2}, 3}; }

completion read(const std::string& stream) {
  completion_reader reader;
  reader.feed(stream);
  return reader.result();
}

TEST(replay_completion, assembles_tokens_text_and_usage) {
  const completion got = read(whole_stream);
  EXPECT_EQ(got.tokens, (std::vector<int>{97, 98, 99}));
  EXPECT_EQ(got.text, "abc");
  EXPECT_EQ(got.finish_reason, "length");
  ASSERT_TRUE(got.usage.has_value());
  EXPECT_EQ(got.usage->completion_tokens, 3U);
  EXPECT_TRUE(got.is_done);
  EXPECT_EQ(difference(three_tokens(), got, {97, 98, 99}), "");
}

TEST(replay_completion, names_the_first_token_that_differs) {
  const completion got = read(whole_stream);
  EXPECT_EQ(difference(three_tokens(), got, {97, 5, 6}), "token 1 is 98 instead of 5");
  EXPECT_EQ(difference(three_tokens(), got, {97, 98}), "token 2 is 99 instead of none");
}

TEST(replay_completion, names_what_is_missing) {
  completion got = read(whole_stream);
  got.is_done = false;
  EXPECT_EQ(incompleteness(three_tokens(), got), "no [DONE] at the end");
  got.usage->completion_tokens = 4;
  EXPECT_EQ(incompleteness(three_tokens(), got), "usage.completion_tokens: 4 instead of 3");
  got.usage.reset();
  EXPECT_EQ(incompleteness(three_tokens(), got), "no chunk with the usage");
  got.finish_reason = "abort";
  EXPECT_EQ(incompleteness(three_tokens(), got), "finish_reason: \"abort\" instead of \"length\"");
  got.tokens.pop_back();
  EXPECT_EQ(incompleteness(three_tokens(), got), "number of tokens: 2 instead of 3");
}

TEST(replay_completion, refuses_errors_and_malformed_events) {
  EXPECT_THROW(read("data: {\"error\":{\"message\":\"no\"}}\n\n"), replay_error);
  EXPECT_THROW(read("data: {\"choices\":7}\n\n"), replay_error);
  EXPECT_THROW(read("data: {\n\n"), replay_error);
  EXPECT_THROW(read("data: [DONE]\n\ndata: {\"choices\":[]}\n\n"), replay_error);
}

TEST(replay_completion, asks_for_tokens_usage_and_a_stream) {
  const auto body = nlohmann::json::parse(to_json(three_tokens()));
  EXPECT_EQ(body.at("prompt"), (std::vector<int>{1, 2}));
  EXPECT_EQ(body.at("max_tokens"), 3);
  EXPECT_TRUE(body.at("ignore_eos").get<bool>());
  EXPECT_TRUE(body.at("return_token_ids").get<bool>());
  EXPECT_TRUE(body.at("stream_options").at("include_usage").get<bool>());
  EXPECT_FALSE(body.contains("kv_transfer_params"));
  auto limited = three_tokens();
  limited.max_offload_tokens = 16;
  EXPECT_EQ(nlohmann::json::parse(to_json(limited)).at("kv_transfer_params").at("max_offload_tokens"), 16);
}

// Prompts must stay what they are on every platform: a seed is how a failure is repeated.
TEST(replay_completion, makes_the_same_prompt_from_the_same_seed) {
  EXPECT_EQ(make_prompt(1, 4), make_prompt(1, 4));
  EXPECT_NE(make_prompt(1, 16), make_prompt(2, 16));
  for (const int token : make_prompt(3, 500)) EXPECT_TRUE(token >= 'a' && token <= 'z');
}

TEST(replay_completion, reads_the_reply_to_a_reset) {
  const reset_reply reply = parse_reset_reply(
      R"({"success": false, "caches": {"device": {"reset": false, "held_by": {"loads": [7, 9], "running_requests": 1},
          "stores_in_flight": 3}}})");
  EXPECT_FALSE(reply.success);
  EXPECT_EQ(reply.held_by_loads, (std::vector<std::uint64_t>{7, 9}));
  EXPECT_EQ(reply.held_by_running_requests, 1U);
  EXPECT_EQ(reply.num_stores_in_flight, 3U);
  EXPECT_THROW(parse_reset_reply(R"({"success": true})"), replay_error);
}

}  // namespace
}  // namespace sluice::replay
