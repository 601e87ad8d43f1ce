// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::inline v0 {

/// Makes text out of token bytes: never cuts a UTF-8 character, replaces invalid bytes by U+FFFD, and holds back what
/// may still become a stop string.
class text_assembler {
 public:
  /// `stops` are non-empty.
  explicit text_assembler(std::vector<std::string> stops);

  /// Appends a token's bytes and returns the text that is certain now. After a stop string was met, that is the text
  /// before the match that was complete first (of several the longest), and `is_stopped` is true; nothing may be added
  /// then.
  std::string add(std::string_view bytes);

  /// The output ended without a stop string: returns all that was held back.
  std::string flush();

  bool is_stopped() const { return is_stopped_; }

 private:
  void decode(bool is_last);
  std::optional<std::size_t> first_match() const;
  std::size_t num_held_back() const;

  std::vector<std::string> stops_;
  std::string undecoded_;  // at most the beginning of one character
  std::string held_;       // whole characters, not returned yet
  bool is_stopped_ = false;
};

}  // namespace sluice::inline v0
