// SPDX-License-Identifier: Apache-2.0
//
// One token per byte, plus special tokens: the tokenizer of the tiny model.
#pragma once

#include <cstdint>

#include <sluice/actors/request/tokenizer.hpp>

namespace sluice::inline v0 {

/// Token i in [0, 256) is byte i; every token from 256 on is special and has no bytes. Immutable, any thread.
class byte_tokenizer : public tokenizer {
 public:
  static constexpr token_id end_token = 256;  ///< ends a text
  static constexpr std::uint32_t vocab_size = 257;

  /// One token per byte; never special tokens.
  std::vector<token_id> encode(std::string_view text) const override;

  /// One byte with static lifetime, or nothing for special and unknown tokens.
  std::string_view bytes(token_id token) const override;
};

}  // namespace sluice::inline v0
