// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Text to tokens and back. Immutable, used from any thread.
class tokenizer {
 public:
  virtual ~tokenizer() = default;

  /// Tokens of valid UTF-8 text, without begin or end tokens.
  virtual std::vector<token_id> encode(std::string_view text) const = 0;

  /// The bytes a token stands for; may be part of a UTF-8 character, empty for special tokens.
  virtual std::string_view bytes(token_id token) const = 0;
};

}  // namespace sluice::inline v0
