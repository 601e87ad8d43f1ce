// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/request_check.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace sluice::inline v0 {

namespace {

constexpr std::size_t max_stop_strings = 16;
constexpr std::size_t max_stop_bytes = 1024;

error invalid(const std::string& field, const std::string& given, const std::string& allowed) {
  return {errc::invalid_argument, field + " is " + given + ", allowed is " + allowed};
}

std::optional<error> check_length(const generation_request& request, std::uint32_t max_model_len) {
  if (request.prompt.empty()) return error{errc::prompt_empty, "the prompt has 0 tokens, allowed is 1 or more"};
  if (request.max_tokens == 0) return invalid("max_tokens", "0", "1 or more");
  const auto num_tokens = std::uint64_t{request.prompt.size()} + request.max_tokens;
  if (num_tokens <= max_model_len) return std::nullopt;
  return error{errc::prompt_too_long, "the prompt has " + std::to_string(request.prompt.size()) +
                                          " tokens and max_tokens is " + std::to_string(request.max_tokens) +
                                          ", together " + std::to_string(num_tokens) + "; allowed are " +
                                          std::to_string(max_model_len)};
}

}  // namespace

std::optional<error> check_request(const generation_request& request, const runtime_info& info) {
  if (auto fault = check_length(request, info.max_model_len)) return fault;
  const auto vocab_size = static_cast<token_id>(info.model.vocab_size);
  const auto bad = std::find_if(request.prompt.begin(), request.prompt.end(),
                                [&](token_id token) { return token < 0 || token >= vocab_size; });
  if (bad != request.prompt.end())
    return invalid("prompt token " + std::to_string(bad - request.prompt.begin()), std::to_string(*bad),
                   "0 to " + std::to_string(vocab_size - 1));
  const auto temperature = request.sampling.temperature;
  if (!std::isfinite(temperature) || temperature < 0 || temperature > 2)
    return invalid("temperature", std::to_string(temperature), "0 to 2");
  if (request.stop.size() > max_stop_strings)
    return invalid("stop", std::to_string(request.stop.size()) + " strings",
                   "at most " + std::to_string(max_stop_strings));
  for (const auto& stop : request.stop)
    if (stop.empty() || stop.size() > max_stop_bytes)
      return invalid("a stop string", std::to_string(stop.size()) + " bytes long",
                     "1 to " + std::to_string(max_stop_bytes));
  return std::nullopt;
}

}  // namespace sluice::inline v0
