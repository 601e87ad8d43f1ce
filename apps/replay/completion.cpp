// SPDX-License-Identifier: Apache-2.0
#include "replay/completion.hpp"

#include <algorithm>
#include <random>

#include <nlohmann/json.hpp>

#include "replay/errors.hpp"

namespace sluice::replay {

using nlohmann::json;

std::string to_json(const completion_request& request) {
  json body{{"model", request.model},
            {"prompt", request.prompt},
            {"max_tokens", request.max_tokens},
            {"temperature", 0},
            {"ignore_eos", true},
            {"return_token_ids", true},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}};
  if (request.max_offload_tokens) body["kv_transfer_params"] = {{"max_offload_tokens", *request.max_offload_tokens}};
  return body.dump();
}

void completion_reader::feed(std::string_view piece) {
  for (const std::string& data : events_.feed(piece)) take_event(data);
}

void completion_reader::take_event(const std::string& data) try {
  if (result_.is_done) throw replay_error("an event after [DONE]: " + data);
  if (data == "[DONE]") {
    result_.is_done = true;
    return;
  }
  const json event = json::parse(data);
  if (event.contains("error")) throw replay_error("the stream broke off: " + event.at("error").dump());
  const json& choices = event.at("choices");
  if (choices.empty()) {
    const json& usage = event.at("usage");
    result_.usage = {usage.at("prompt_tokens").get<std::uint64_t>(),
                     usage.at("completion_tokens").get<std::uint64_t>()};
    return;
  }
  const json& choice = choices.at(0);
  result_.text += choice.at("text").get<std::string>();
  if (const auto tokens = choice.find("token_ids"); tokens != choice.end() && !tokens->is_null())
    for (const json& token : *tokens) result_.tokens.push_back(token.get<int>());
  if (const auto reason = choice.find("finish_reason"); reason != choice.end() && reason->is_string())
    result_.finish_reason = reason->get<std::string>();
} catch (const json::exception& error) {
  throw replay_error("a malformed event (" + std::string(error.what()) + "): " + data);
}

std::string incompleteness(const completion_request& request, const completion& got) {
  const auto expected = [](const std::string& what, auto wanted, auto found) {
    return what + ": " + std::to_string(found) + " instead of " + std::to_string(wanted);
  };
  if (got.tokens.size() != request.max_tokens)
    return expected("number of tokens", request.max_tokens, got.tokens.size());
  if (got.finish_reason != "length") return "finish_reason: \"" + got.finish_reason + "\" instead of \"length\"";
  if (!got.usage) return "no chunk with the usage";
  if (got.usage->completion_tokens != request.max_tokens)
    return expected("usage.completion_tokens", request.max_tokens, got.usage->completion_tokens);
  if (got.usage->prompt_tokens != request.prompt.size())
    return expected("usage.prompt_tokens", request.prompt.size(), got.usage->prompt_tokens);
  if (!got.is_done) return "no [DONE] at the end";
  return {};
}

std::string difference(const completion_request& request, const completion& got, const std::vector<int>& reference) {
  if (std::string reason = incompleteness(request, got); !reason.empty()) return reason;
  const auto [here, there] = std::ranges::mismatch(got.tokens, reference);
  if (here == got.tokens.end() && there == reference.end()) return {};
  return "token " + std::to_string(here - got.tokens.begin()) + " is " +
         (here == got.tokens.end() ? "missing" : std::to_string(*here)) + " instead of " +
         (there == reference.end() ? "none" : std::to_string(*there));
}

std::vector<int> make_prompt(std::uint64_t seed, std::size_t num_tokens) {
  // Only the engine's raw output is used: it is the same on every platform, distributions are not.
  std::mt19937_64 engine(seed);
  std::vector<int> prompt(num_tokens);
  std::ranges::generate(prompt, [&] { return static_cast<int>('a' + engine() % 26); });
  return prompt;
}

}  // namespace sluice::replay
