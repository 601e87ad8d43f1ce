// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/request/byte_tokenizer.hpp>

#include <array>
#include <cstddef>

namespace sluice::inline v0 {
namespace {

constexpr std::size_t num_bytes = 256;

constexpr std::array<char, num_bytes> all_bytes = [] {
  std::array<char, num_bytes> table{};
  for (std::size_t i = 0; i < num_bytes; ++i) table[i] = static_cast<char>(static_cast<unsigned char>(i));
  return table;
}();

}  // namespace

std::vector<token_id> byte_tokenizer::encode(std::string_view text) const {
  std::vector<token_id> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string_view byte_tokenizer::bytes(token_id token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= num_bytes) return {};
  return {&all_bytes[static_cast<std::size_t>(token)], 1};
}

}  // namespace sluice::inline v0
