// SPDX-License-Identifier: Apache-2.0
//
// The functions behind the checking executor: what a position holds, what is folded over a prefix, which token
// follows from it, and how places are named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0::checking_content {

inline constexpr std::uint64_t chain_root = 0x5107ce5107ce5107;
inline constexpr std::uint64_t word_step = 0x9e3779b97f4a7c15;
inline constexpr std::size_t word_bytes = sizeof(std::uint64_t);

/// The finaliser of splitmix64; a bijection.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Covers the whole prefix up to `token`, which stands at `position`.
constexpr std::uint64_t next_chain(std::uint64_t chain, token_id token, std::uint64_t position) {
  return mix(mix(chain + static_cast<std::uint32_t>(token) + 1) + position * word_step + 1);
}

/// Every word is a bijection of the chain value, and no two words of a position are alike.
constexpr std::uint64_t word_of(std::uint64_t chain, std::size_t index) { return chain + index * word_step; }
constexpr std::uint64_t chain_of(std::uint64_t word, std::size_t index) { return word - index * word_step; }

/// XORed to every word that is written in `epoch`.
constexpr std::uint64_t epoch_mask(std::uint64_t epoch) { return mix(epoch * word_step + 0xe90c); }

constexpr std::uint64_t fold_word(std::uint64_t digest, std::uint64_t word) {
  return digest * 0xd1342543de82ef95 + word;
}

/// The fold over a prefix, extended by one position of `num_words` right words.
constexpr std::uint64_t fold_position(std::uint64_t fold, std::uint64_t chain, std::size_t num_words) {
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < num_words; ++i) digest = fold_word(digest, word_of(chain, i));
  return mix(fold + digest);
}

/// The token that follows from a fold: the end token with probability 1 / `end_one_in` (never if 0), else another.
constexpr token_id draw_token(std::uint64_t fold, std::uint32_t vocab_size, token_id end_token,
                              std::uint32_t end_one_in) {
  fold = mix(fold + 1);
  if (end_one_in > 0 && fold % end_one_in == 0) return end_token;
  const auto token = static_cast<token_id>(mix(fold) % (vocab_size - 1));
  return token < end_token ? token : token + 1;
}

inline std::string at(std::uint32_t position) { return "position " + std::to_string(position); }
inline std::string at(std::uint32_t position, block_id block) {
  return at(position) + " block " + std::to_string(block.value);
}

inline std::string hex(std::uint64_t word) {
  std::ostringstream text;
  text << std::hex << word;
  return text.str();
}

}  // namespace sluice::inline v0::checking_content
