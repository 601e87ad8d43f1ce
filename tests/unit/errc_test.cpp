// SPDX-License-Identifier: Apache-2.0
#include <sluice/messages/errc.hpp>

#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr int num_errors = static_cast<int>(errc::invariant_violated) + 1;

// Guards: no two errors look alike in a log or to a person, and none was forgotten.
TEST(errc, every_enumerator_has_its_own_name_and_sentence) {
  std::set<std::string_view> names, sentences;
  for (int value = 0; value < num_errors; ++value) {
    const auto code = static_cast<errc>(value);
    const auto name = to_string(code), sentence = describe(code);
    EXPECT_NE(name, "unknown") << value;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos) << name;
    EXPECT_GT(sentence.size(), 8U) << name;
    EXPECT_EQ(sentence.back(), '.') << name;
    EXPECT_NE(sentence, "Unknown error.") << name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(sentences.insert(sentence).second) << name;
  }
}

// Guards: an enumerator added at the end of the list is covered above.
TEST(errc, the_last_enumerator_is_the_last) {
  EXPECT_EQ(to_string(static_cast<errc>(num_errors)), "unknown");
  EXPECT_EQ(describe(static_cast<errc>(num_errors)), "Unknown error.");
  EXPECT_EQ(to_string(errc::none), "none");
  EXPECT_EQ(static_cast<int>(errc::none), 0);
}

}  // namespace
}  // namespace sluice
