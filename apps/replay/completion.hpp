// SPDX-License-Identifier: Apache-2.0
//
// `POST /v1/completions` as values: what is asked, and what a stream of events answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/sse_reader.hpp"

namespace sluice::replay {

/// Greedy, streamed, never ended by an end token, so exactly `max_tokens` tokens come back.
struct completion_request {
  std::string model;
  std::vector<int> prompt;
  std::uint32_t max_tokens = 64;
  std::optional<std::uint32_t> max_offload_tokens{};  ///< leading tokens that may go to the host tier; none: all
};

std::string to_json(const completion_request& request);

struct completion_usage {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t completion_tokens = 0;
};

/// What has arrived of a streamed completion.
struct completion {
  std::vector<int> tokens;
  std::string text;
  std::string finish_reason;              ///< empty before the end
  std::optional<completion_usage> usage;  ///< from the chunk without choices
  bool is_done = false;                   ///< `[DONE]` has arrived
};

/// Assembles a completion from the pieces of its response body. Throws replay_error when an event is not what API.md
/// says, or carries an error.
class completion_reader {
 public:
  void feed(std::string_view piece);
  const completion& result() const { return result_; }

 private:
  void take_event(const std::string& data);

  sse_reader events_;
  completion result_;
};

/// Why `got` is not the complete answer to `request` with the tokens of `reference`; empty when it is.
std::string difference(const completion_request& request, const completion& got, const std::vector<int>& reference);

/// The same without a reference: complete, and of the right length.
std::string incompleteness(const completion_request& request, const completion& got);

/// `num_tokens` lower-case letters as tokens of the byte tokenizer. Prompts of different seeds have different first
/// blocks, so they share no KV.
std::vector<int> make_prompt(std::uint64_t seed, std::size_t num_tokens);

}  // namespace sluice::replay
