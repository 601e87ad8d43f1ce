// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/request/text_assembler.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

using texts = std::vector<std::string>;
using namespace std::string_literals;

/// What `add` returned for each token, and `flush` at the end unless a stop string was met.
texts deltas(const texts& tokens, const texts& stops = {}) {
  text_assembler assembler(stops);
  texts found;
  for (const auto& token : tokens) {
    found.push_back(assembler.add(token));
    if (assembler.is_stopped()) return found;
  }
  found.push_back(assembler.flush());
  return found;
}

std::string joined(const texts& parts) {
  std::string all;
  for (const auto& part : parts) all += part;
  return all;
}

/// The text of `bytes` when they come in one token, as the test demands it for every way to cut them in two.
std::string decoded(const std::string& bytes) {
  const auto whole = joined(deltas({bytes}));
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut)
    EXPECT_EQ(joined(deltas({bytes.substr(0, cut), bytes.substr(cut)})), whole) << "cut at " << cut;
  return whole;
}

// Guards: plain text goes out at once.
TEST(text_assembler, passes_whole_characters_on) {
  EXPECT_EQ(deltas({"a", "b\xC3\xA9", "\xF0\x9F\x98\x80"}), (texts{"a", "b\xC3\xA9", "\xF0\x9F\x98\x80", ""}));
}

// Guards: a character is never cut, wherever tokens end.
TEST(text_assembler, utf8_cut_at_every_position) {
  const std::string text = "a\xC3\xA9z\xE2\x82\xAC\xF0\x9F\x98\x80!";
  EXPECT_EQ(decoded(text), text);
  text_assembler assembler({});
  std::vector<std::size_t> num_bytes;
  for (const char byte : text) num_bytes.push_back(assembler.add({&byte, 1}).size());
  EXPECT_EQ(num_bytes, (std::vector<std::size_t>{1, 0, 2, 1, 0, 0, 3, 0, 0, 0, 4, 1}));
}

// Guards: invalid bytes become what Python's bytes.decode("utf-8", errors="replace") makes of them.
TEST(text_assembler, invalid_bytes_are_replaced_like_in_python) {
  const std::string r = "\xEF\xBF\xBD";
  const std::pair<std::string, std::string> cases[] = {
      {"\xC3", r},                               // the end of the output inside a character
      {"\xC3(", r + "("},                        // a lead byte without its continuation
      {"\xE2\x82", r},                           // one for the part of a character
      {"\xE2\x82(", r + "("},                    //
      {"\xE0\x80\x80", r + r + r},               // overlong
      {"\xC0\xAF", r + r},                       // overlong
      {"\xED\xA0\x80", r + r + r},               // surrogate
      {"\xF0\x9F\x98", r},                       //
      {"\xF0\x80\x80\x80", r + r + r + r},       // overlong
      {"\xF4\x90\x80\x80", r + r + r + r},       // above U+10FFFF
      {"\xF8\x88\x80\x80", r + r + r + r},       // a lead byte of five
      {"\xFF", r},                               //
      {"\x80", r},                               // a continuation without a lead byte
      {"\xE2\xE2\x82\xAC", r + "\xE2\x82\xAC"},  // a character after the beginning of one
      {"\xF0\x9F\x98\xF0\x9F\x98\x80", r + "\xF0\x9F\x98\x80"},
      {"a\0b"s, "a\0b"s},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(decoded(bytes), text);
}

// Guards: the same for all 234,256 sequences of four bytes from the borders of the table; hash computed with python3:
//   h = 0xcbf29ce484222325
//   for s in itertools.product(borders, repeat=4):
//     for b in bytes(s).decode("utf-8", errors="replace").encode() + b"\n": h = ((h ^ b) * 0x100000001b3) % 2**64
TEST(text_assembler, decodes_every_border_case_like_python) {
  constexpr std::array<unsigned char, 22> borders{0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1,
                                                  0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff};
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t number = 0; number < 22 * 22 * 22 * 22; ++number) {
    std::string bytes(4, '\0');
    for (std::size_t i = 4, rest = number; i-- > 0; rest /= 22) bytes[i] = static_cast<char>(borders[rest % 22]);
    text_assembler assembler({});
    auto text = assembler.add(bytes);
    text += assembler.flush() + "\n";
    for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  EXPECT_EQ(hash, 0x45c5b9466ba2fc59U);
}

// Guards: hazard STREAM-07, stop strings do not respect token borders; nothing of one is sent before the decision.
TEST(text_assembler, stop_strings_across_tokens) {
  const texts tokens{"AB", "CD", "EF"};
  EXPECT_EQ(deltas(tokens, {"DE"}), (texts{"AB", "C", ""}));
  EXPECT_EQ(deltas(tokens, {"ABCDEF"}), (texts{"", "", ""}));
  EXPECT_EQ(deltas(tokens, {"F"}), (texts{"AB", "CD", "E"}));
  EXPECT_EQ(deltas(tokens, {"XYZ"}), (texts{"AB", "CD", "EF", ""}));
  EXPECT_EQ(deltas(tokens, {"A"}), (texts{""}));
}

// Guards: is_stopped is told apart from an end without a stop string.
TEST(text_assembler, says_whether_it_stopped) {
  text_assembler assembler({"DE"});
  assembler.add("ABCD");
  EXPECT_FALSE(assembler.is_stopped());
  EXPECT_EQ(assembler.add("EF"), "");
  EXPECT_TRUE(assembler.is_stopped());
  EXPECT_EQ(assembler.flush(), "");
}

// Guards: text is cut before the earliest match, whichever stop string is named first.
TEST(text_assembler, the_earliest_match_counts) {
  for (const auto& stops : {texts{"DE", "BC"}, texts{"BC", "DE"}}) EXPECT_EQ(deltas({"ABCDEF"}, stops), (texts{"A"}));
  EXPECT_EQ(deltas({"ABAB"}, {"AB"}), (texts{""}));
}

// Guards: the same text wherever tokens end, also when one stop string contains another.
TEST(text_assembler, the_match_that_is_complete_first_counts_at_any_token_border) {
  for (const std::vector<std::string>& tokens :
       {std::vector<std::string>{"ABCDEF"}, {"AB", "CD", "EF"}, {"A", "BCDE", "F"}, {"A", "B", "C", "D", "E", "F"}}) {
    text_assembler text({"ABCDEF", "CD"});
    std::string all;
    for (const auto& token : tokens) {
      all += text.add(token);
      if (text.is_stopped()) break;
    }
    EXPECT_TRUE(text.is_stopped());
    EXPECT_EQ(all, "AB");
  }
}

// Guards: stop strings that overlap, or begin alike.
TEST(text_assembler, overlapping_stop_strings) {
  EXPECT_EQ(deltas({"AB", "CD", "EF"}, {"CDE", "DEF"}), (texts{"AB", "", ""}));
  EXPECT_EQ(deltas({"AB", "CD", "EF"}, {"CDX", "DEF"}), (texts{"AB", "", "C"}));
  EXPECT_EQ(deltas({"AB", "CX"}, {"BCD", "BC"}), (texts{"A", ""}));
}

// Guards: held-back text is released when the match fails, and not more than must be is held back.
TEST(text_assembler, held_back_text_is_released_when_the_match_fails) {
  EXPECT_EQ(deltas({"xA", "BC", "zA"}, {"ABCD"}), (texts{"x", "", "ABCz", "A"}));
  EXPECT_EQ(deltas({"AAA", "A", "B"}, {"AAB"}), (texts{"A", "A", ""}));
  EXPECT_EQ(deltas({"A", "B", "A", "B", "C"}, {"ABC"}), (texts{"", "", "AB", "", ""}));
}

// Guards: held-back text is released at the end of the output, with what is left of a character.
TEST(text_assembler, held_back_text_is_released_at_the_end) {
  EXPECT_EQ(deltas({"xAB"}, {"ABC"}), (texts{"x", "AB"}));
  EXPECT_EQ(deltas({"A\xE2\x82"}, {"AB"}), (texts{"", "A\xEF\xBF\xBD"}));
}

// Guards: a stop string of several bytes per character, cut inside a character.
TEST(text_assembler, stop_strings_are_text) {
  EXPECT_EQ(deltas({"a\xE2\x82", "\xACzb"}, {"\xE2\x82\xACz"}), (texts{"a", ""}));
  EXPECT_EQ(deltas({"a\xE2\x82", "\xACyb"}, {"\xE2\x82\xACz"}), (texts{"a", "\xE2\x82\xACyb", ""}));
  EXPECT_EQ(deltas({"a\xFF", "b"}, {"\xEF\xBF\xBD"}), (texts{"a"}));
}

// Guards: hazard STREAM-07, the deltas together are the text before the earliest match, wherever tokens end.
TEST(text_assembler, token_borders_do_not_change_the_text) {
  const std::string text = "the cat \xC3\xA9 sat on the mat";
  const std::pair<std::string, std::string> cases[] = {{"sat", "the cat \xC3\xA9 "},
                                                       {"\xC3\xA9", "the cat "},
                                                       {"the", ""},
                                                       {" mat!", text},
                                                       {"mat", "the cat \xC3\xA9 sat on the "}};
  for (const auto& [stop, expected] : cases)
    for (std::size_t a = 0; a <= text.size(); ++a)
      for (std::size_t b = a; b <= text.size(); ++b)
        ASSERT_EQ(joined(deltas({text.substr(0, a), text.substr(a, b - a), text.substr(b)}, {stop})), expected)
            << "stop " << stop << ", cut at " << a << " and " << b;
}

}  // namespace
}  // namespace sluice
