// SPDX-License-Identifier: Apache-2.0
//
// The tiny model with sliding-window layers: what it sees, what it does not touch, and that nothing else counts.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tiny_fixture.hpp"

namespace sluice {
namespace {

using unit::bits;
using unit::equal_bits;

constexpr std::uint32_t window = 24;
constexpr std::uint32_t size = 150;  // so that the last position, 149, sees from 126 on

struct tiny_window_test : unit::tiny_fixture {
  tiny_window_test() : tiny_fixture(window) {}

  std::span<float> floats(block_id block) {
    const auto per_block = bytes_per_block / sizeof(float);
    return {reinterpret_cast<float*>(memory.data()) + block.value * per_block, per_block};
  }

  /// One entry of the window group: `part` counts K and V of both layers.
  float& window_value(std::uint32_t position, std::size_t part, std::size_t dim) {
    const std::uint32_t block = 1 + group_distance + position / 16;
    return floats({block})[(part * 16 + position % 16) * tiny::kv_dim + dim];
  }

  /// The prompt is computed; then its last token again, with these tables.
  void run_last(const batch_entry& whole, std::vector<std::vector<block_id>> tables) {
    auto last = entry(1, {}, size - 1, {whole.tokens.back()});
    last.block_tables = std::move(tables);
    run({last});
  }
};

TEST_F(tiny_window_test, describes_itself) {
  EXPECT_EQ(model.info().name, "tiny-window-24-0");
  const auto spec = model.kv(16);
  ASSERT_EQ(spec.groups.size(), 2u);
  EXPECT_EQ(spec.groups[0].attention, kv_group_spec::kind::full_attention);
  EXPECT_EQ(spec.groups[1].attention, kv_group_spec::kind::sliding_window);
  EXPECT_EQ(spec.groups[1].window_tokens, window);
  EXPECT_EQ(spec.groups[0].block_size, 16u);
  EXPECT_EQ(spec.groups[1].block_size, 16u);
  EXPECT_EQ(spec.bytes_per_block, 16 * tiny::kv_bytes_per_token / 2);
}

// Guards: a window longer than all text is no window; everything else about the two models is the same.
TEST(tiny_window, a_window_as_long_as_the_text_changes_no_bit) {
  struct fixture : unit::tiny_fixture {
    explicit fixture(std::uint32_t window_tokens) : tiny_fixture(window_tokens) {}
    void TestBody() override {}
  };
  fixture plain(0), wide(2048), narrow(window);
  const auto expected = plain.generate(fixture::text(40), 100);
  EXPECT_EQ(wide.generate(fixture::text(40), 100), expected);
  EXPECT_TRUE(equal_bits(wide.logits, plain.logits));
  EXPECT_NE(narrow.generate(fixture::text(40), 100), expected);
}

// Guards: blocks before the window belong to others by now, or are the null block.
TEST_F(tiny_window_test, what_lies_before_the_window_does_not_matter) {
  const auto whole = entry(1, table(1, 1, 10), 0, text(size));
  run({whole});
  const auto right = logits;
  for (std::uint32_t position = 0; position < size - window; ++position)
    for (std::size_t part = 0; part < 4; ++part)
      for (std::size_t dim = 0; dim < tiny::kv_dim; ++dim) window_value(position, part, dim) = NAN;
  run_last(whole, whole.block_tables);
  EXPECT_TRUE(equal_bits(logits, right));

  auto tables = whole.block_tables;
  for (std::uint32_t i = 0; i < (size - window) / 16; ++i) tables[1][i] = null_block;
  std::ranges::fill(floats(null_block), NAN);
  run_last(whole, tables);
  EXPECT_TRUE(equal_bits(logits, right));
  for (std::uint32_t i = 0; i < (size - window) / 16; ++i) tables[1][i] = block_id{4'000'000'000};
  run_last(whole, tables);
  EXPECT_TRUE(equal_bits(logits, right));
}

// Guards: every KV entry that a layer sees counts: the whole window, the whole past in the other layers.
TEST_F(tiny_window_test, what_lies_within_the_window_matters) {
  const auto whole = entry(1, table(1, 1, 10), 0, text(size));
  run({whole});
  const auto right = logits;
  const auto expect_change = [&](float& value) {
    const float kept = std::exchange(value, value > 0 ? value - 1 : value + 1);
    run_last(whole, whole.block_tables);
    EXPECT_FALSE(equal_bits(logits, right));
    value = kept;
  };
  for (std::uint32_t position = size - window; position + 1 < size; ++position)
    for (std::size_t part = 0; part < 4; ++part)
      for (std::size_t dim = position % 3; dim < tiny::kv_dim; dim += 3)
        expect_change(window_value(position, part, dim));
  for (std::uint32_t position = 0; position + 1 < size; position += 7)
    for (std::size_t part = 0; part < 4; ++part)
      expect_change(floats({1 + position / 16})[(part * 16 + position % 16) * tiny::kv_dim + position % tiny::kv_dim]);
  run_last(whole, whole.block_tables);
  EXPECT_TRUE(equal_bits(logits, right));
}

// Guards: a request whose window has let blocks go, and the same request computed anew elsewhere.
TEST_F(tiny_window_test, resume_recomputes_the_same_bits) {
  const auto prompt = text(40);
  auto tokens = prompt;
  auto step = entry(1, table(1, 1, 10), 0, prompt);
  for (int i = 0; i < 80; ++i) {
    const auto next = run({step}).at(0).token;
    step.first_position = static_cast<std::uint32_t>(tokens.size());
    step.tokens = {next};
    tokens.push_back(next);
    const auto first_seen = step.first_position + 1 - window;
    for (std::uint32_t passed = 0; passed < first_seen / 16; ++passed) step.block_tables[1][passed] = null_block;
  }
  const auto last = logits;
  tokens.pop_back();
  run({entry(2, table(60, 1, 10), 0, tokens)});
  EXPECT_TRUE(equal_bits(logits, last));
}

}  // namespace
}  // namespace sluice
