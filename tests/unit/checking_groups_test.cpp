// SPDX-License-Identifier: Apache-2.0
//
// The checking executor with several KV groups, and its pending tokens: what protocol tests of windows and of
// asynchronous scheduling rest on.
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "../support/checking_executor.hpp"
#include "../support/immediate_stream.hpp"

namespace sluice {
namespace {

constexpr std::uint32_t num_blocks = 32;

checking_executor_options two_groups() {
  checking_executor_options options;
  options.groups = {{kv_group_spec::kind::full_attention, 0, 4}, {kv_group_spec::kind::sliding_window, 5, 2}};
  return options;
}

using block_list = std::vector<std::uint32_t>;

/// Group 0: full attention, 4 tokens per block. Group 1: a window of 5 tokens, 2 tokens per block.
struct checking_groups : ::testing::Test {
  checking_groups() {
    block_bytes = executor.kv(4).bytes_per_block;
    memory.assign(block_bytes * num_blocks, std::byte{0});
    const kv_segment whole{memory.data(), block_bytes, block_bytes};
    executor.bind({num_blocks, {{whole}, {whole}}});
    executor.expect(request_id{1}, prompt);
  }

  static batch_entry entry(const block_list& in_0, const block_list& in_1, std::uint32_t first,
                           std::vector<token_id> tokens, std::uint32_t output_position) {
    batch_entry made;
    made.request = {1};
    made.attempt = {1};
    made.first_position = first;
    made.tokens = std::move(tokens);
    for (const auto* table : {&in_0, &in_1}) {
      made.block_tables.emplace_back();
      for (auto id : *table) made.block_tables.back().push_back({id});
    }
    made.samples = true;
    made.output_position = output_position;
    return made;
  }

  token_id step(const block_list& in_0, const block_list& in_1, std::uint32_t first, std::vector<token_id> tokens,
                std::uint32_t output_position = 0, const std::vector<sampled_token>& previous = {}) {
    step_batch batch{{1}, {entry(in_0, in_1, first, std::move(tokens), output_position)}};
    std::vector<sampled_token> sampled;
    EXPECT_TRUE(executor.enqueue(batch, previous, stream, sampled));
    return sampled.at(0).token;
  }

  void spoil(std::uint32_t block) { std::memset(memory.data() + block * block_bytes, 0x5a, block_bytes); }

  checking_executor executor{two_groups()};
  testing::immediate_stream stream;
  std::vector<std::byte> memory;
  std::size_t block_bytes = 0;
  const std::vector<token_id> prompt{5, 6, 7, 8, 9, 10, 11, 12};
  const block_list full{1, 2, 3}, window{4, 5, 6, 7, 8};
};

// Guards: right content gives the reference, which does not depend on the groups.
TEST_F(checking_groups, output_is_that_of_one_group) {
  const auto expected = checking_executor().reference(prompt, 2);
  const auto token = step(full, window, 0, prompt);
  EXPECT_EQ(token, expected[0]);
  EXPECT_EQ(step(full, window, 8, {token}, 1), expected[1]);
  EXPECT_TRUE(executor.violations().empty());
}

// Guards: what the window has passed may be gone; what it reads may not.
TEST_F(checking_groups, only_the_window_is_read) {
  const auto token = step(full, window, 0, prompt);
  spoil(4), spoil(5);  // positions 0 to 3; position 8 reads from 4 on
  EXPECT_EQ(step(full, {0, 0, 6, 7, 8}, 8, {token}, 1), executor.reference(prompt, 2)[1]);
  EXPECT_TRUE(executor.violations().empty());
  step(full, {0, 0, 0, 7, 8}, 8, {token}, 1);
  ASSERT_EQ(executor.violations().size(), 1U);
  EXPECT_NE(executor.violations()[0].find("position 4 block 0: the null block"), std::string::npos);
}

// Guards: wrong content is named with its group and changes the output, in each group.
TEST_F(checking_groups, wrong_content_is_named_in_each_group) {
  const auto token = step(full, window, 0, prompt);
  const auto before = memory;
  for (const auto& [block, where] : std::vector<std::pair<std::uint32_t, std::string>>{
           {2, "group 0 position 4 block 2"}, {7, "group 1 position 6 block 7"}}) {
    const auto num_before = executor.violations().size();
    spoil(block);
    EXPECT_NE(step(full, window, 8, {token}, 1), executor.reference(prompt, 2)[1]);
    ASSERT_GT(executor.violations().size(), num_before);
    EXPECT_NE(executor.violations()[num_before].find(where), std::string::npos) << executor.violations()[num_before];
    memory = before;
  }
}

// Guards: a block of the other group is wrong, although it holds the same tokens.
TEST_F(checking_groups, a_block_of_the_other_group_is_wrong) {
  const auto token = step(full, window, 0, prompt);
  step({4, 2, 3}, window, 8, {token}, 1);
  EXPECT_FALSE(executor.violations().empty());
}

// Guards: a pending token is the one that the step before sampled for the same request and attempt.
TEST_F(checking_groups, pending_tokens_are_resolved_and_checked) {
  const auto token = step(full, window, 0, prompt);
  EXPECT_EQ(step(full, window, 8, {pending_token}, 1, {{{1}, {1}, token}}), executor.reference(prompt, 2)[1]);
  EXPECT_TRUE(executor.violations().empty());
  step(full, window, 8, {pending_token}, 1, {{{1}, {2}, token}});
  ASSERT_EQ(executor.violations().size(), 1U);
  EXPECT_NE(executor.violations()[0].find("attempt 2"), std::string::npos);
  step(full, window, 8, {pending_token}, 1);
  EXPECT_NE(executor.violations()[1].find("has 0"), std::string::npos);
}

}  // namespace
}  // namespace sluice
