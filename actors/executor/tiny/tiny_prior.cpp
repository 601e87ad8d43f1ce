// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/tiny/tiny_prior.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <sluice/actors/request/byte_tokenizer.hpp>

namespace sluice::inline v0::tiny {
namespace {

static_assert(vocab_size == byte_tokenizer::vocab_size);

enum class token_class : std::uint8_t { other, vowel, consonant, comma, full_stop };

constexpr std::size_t num_classes = 5;
constexpr float excluded = -40.0f;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
constexpr std::array<double, 26> letter_percents = {8.2, 1.5, 2.8, 4.3, 12.7, 2.2, 2.0, 6.1, 7.0, 0.2, 0.8, 4.0, 2.4,
                                                    6.7, 7.5, 1.9, 0.1, 6.0,  6.3, 9.1, 2.8, 1.0, 2.4, 0.2, 2.0, 0.1};

using prior = std::array<float, vocab_size>;

token_class class_of(token_id token) {
  if (token == '.') return token_class::full_stop;
  if (token == ',') return token_class::comma;
  if (token < 'a' || token > 'z') return token_class::other;
  const bool is_vowel = std::string_view("aeiou").find(static_cast<char>(token)) != std::string_view::npos;
  return is_vowel ? token_class::vowel : token_class::consonant;
}

void set_percent(prior& values, token_id token, double percent) {
  values[static_cast<std::size_t>(token)] = static_cast<float>(std::log(percent / 100));
}

/// Letters, each with its frequency times the factor of its class.
void set_letters(prior& values, double vowel_factor, double consonant_factor) {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const token_id token = letters[i];
    const bool is_vowel = class_of(token) == token_class::vowel;
    set_percent(values, token, letter_percents[i] * (is_vowel ? vowel_factor : consonant_factor));
  }
}

prior make_prior(token_class last) {
  prior values;
  values.fill(excluded);
  switch (last) {
    case token_class::other: set_letters(values, 1.0, 1.0); break;
    case token_class::vowel: set_letters(values, 0.15, 1.5); break;
    case token_class::consonant: set_letters(values, 2.5, 0.25); break;
    case token_class::comma: set_percent(values, ' ', 100); break;
    case token_class::full_stop:
      set_percent(values, ' ', 100);
      set_percent(values, '\n', 10);
      set_percent(values, byte_tokenizer::end_token, 10);
      break;
  }
  if (last == token_class::vowel || last == token_class::consonant) {
    set_percent(values, ' ', last == token_class::vowel ? 20 : 32);
    set_percent(values, ',', 0.6);
    set_percent(values, '.', 0.6);
  }
  return values;
}

}  // namespace

std::span<const float> prior_after(token_id last) {
  static const auto priors = [] {
    std::array<prior, num_classes> made;
    for (std::size_t i = 0; i < num_classes; ++i) made[i] = make_prior(static_cast<token_class>(i));
    return made;
  }();
  return priors[static_cast<std::size_t>(class_of(last))];
}

}  // namespace sluice::inline v0::tiny
