// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <sluice/actors/request/byte_tokenizer.hpp>

namespace sluice {
namespace {

TEST(byte_tokenizer, ids_are_the_bytes) {
  const byte_tokenizer tokenizer;
  EXPECT_EQ(tokenizer.encode("a\xc3\xa9"), (std::vector<token_id>{0x61, 0xc3, 0xa9}));
  EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(byte_tokenizer, every_byte_survives_a_round_trip) {
  const byte_tokenizer tokenizer;
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));
  std::string back;
  for (const auto token : tokenizer.encode(text)) back += tokenizer.bytes(token);
  EXPECT_EQ(back, text);
}

TEST(byte_tokenizer, specials_and_unknown_tokens_have_no_bytes) {
  const byte_tokenizer tokenizer;
  EXPECT_TRUE(tokenizer.bytes(byte_tokenizer::end_token).empty());
  EXPECT_TRUE(tokenizer.bytes(-1).empty());
  EXPECT_TRUE(tokenizer.bytes(100000).empty());
}

}  // namespace
}  // namespace sluice
