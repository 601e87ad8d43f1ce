// SPDX-License-Identifier: Apache-2.0
#include "../support/checking_executor.hpp"
#include "../support/immediate_stream.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr std::uint32_t block_size = 4;
constexpr std::uint32_t num_blocks = 64;

struct checking_executor_test : ::testing::Test {
  checking_executor_test() { bind(executor); }

  void bind(checking_executor& which) {
    const auto bytes = which.kv(block_size).bytes_per_block;
    memory.assign(bytes * num_blocks, std::byte{0});
    which.bind({num_blocks, {{kv_segment{memory.data(), bytes, bytes}}}});
  }

  std::byte* block(std::uint32_t id) { return memory.data() + id * block_bytes; }

  /// Runs one entry over `tokens` from `first` on; returns the sampled token.
  token_id step(std::uint64_t request, const std::vector<std::uint32_t>& blocks, std::uint32_t first,
                std::vector<token_id> tokens, std::uint32_t output_position = 0) {
    step_batch batch{step_id{1}, {entry(request, blocks, first, std::move(tokens), output_position)}};
    return run(batch).at(0).token;
  }

  static batch_entry entry(std::uint64_t request, const std::vector<std::uint32_t>& blocks, std::uint32_t first,
                           std::vector<token_id> tokens, std::uint32_t output_position = 0) {
    batch_entry made;
    made.request = request_id{request};
    made.first_position = first;
    made.tokens = std::move(tokens);
    made.block_tables.emplace_back();
    for (const auto id : blocks) made.block_tables[0].push_back(block_id{id});
    made.samples = true;
    made.output_position = output_position;
    return made;
  }

  std::vector<sampled_token> run(const step_batch& batch) {
    std::vector<sampled_token> sampled;
    EXPECT_TRUE(executor.enqueue(batch, {}, stream, sampled));
    return sampled;
  }

  /// The single violation, which must contain each of `parts`.
  void expect_violation(const std::vector<std::string>& parts) {
    const auto found = executor.violations();
    ASSERT_EQ(found.size(), 1u) << ::testing::PrintToString(found);
    for (const auto& part : parts) EXPECT_NE(found[0].find(part), std::string::npos) << found[0];
  }

  checking_executor executor;
  testing::immediate_stream stream;
  std::vector<std::byte> memory;
  const std::size_t block_bytes = checking_executor().kv(block_size).bytes_per_block;
  const std::vector<token_id> prompt = {5, 6, 7, 8, 9, 10, 11, 12, 13};
};

TEST_F(checking_executor_test, output_equals_the_reference_and_nothing_is_reported) {
  executor.expect(request_id{1}, prompt);
  const auto expected = executor.reference(prompt, 4);
  auto token = step(1, {9, 3, 7, 20}, 0, prompt);
  EXPECT_EQ(token, expected[0]);
  for (std::uint32_t i = 1; i < 4; ++i) {
    token = step(1, {9, 3, 7, 20}, 8 + i, {token}, i);
    EXPECT_EQ(token, expected[i]);
  }
  EXPECT_TRUE(executor.violations().empty());
  EXPECT_EQ(executor.num_verified_positions(), 9u + 10 + 11);
}

TEST_F(checking_executor_test, chunked_prefill_other_blocks_and_resume_give_the_same_token) {
  const auto whole = step(1, {1, 2, 3}, 0, prompt);
  step(2, {8, 5, 4}, 0, {5, 6, 7});
  executor.forget(request_id{2});  // the middle of a prompt is not sampled in real life
  EXPECT_EQ(step(2, {8, 5, 4}, 3, {8, 9, 10, 11, 12, 13}), whole);
  EXPECT_EQ(step(1, {11, 12, 13}, 0, prompt), whole);
  EXPECT_TRUE(executor.violations().empty());
}

TEST_F(checking_executor_test, prefix_of_another_request_is_learned_from_its_blocks) {
  step(1, {1, 2, 3}, 0, prompt);
  EXPECT_EQ(step(2, {1, 2, 4}, 8, {13}), executor.reference(prompt, 1)[0]);
  EXPECT_TRUE(executor.violations().empty());
}

TEST_F(checking_executor_test, wrong_block_is_named) {
  executor.expect(request_id{1}, prompt);
  step(1, {1, 2, 3}, 0, prompt);
  EXPECT_NE(step(1, {1, 9, 3}, 8, {13}), executor.reference(prompt, 1)[0]);
  EXPECT_NE(executor.violations().at(0).find("request 1 position 4 block 9 word 0"), std::string::npos);
}

TEST_F(checking_executor_test, swapped_blocks_are_named) {
  step(1, {1, 2, 3}, 0, prompt);
  step(1, {2, 1, 3}, 8, {13});
  const auto found = executor.violations();
  ASSERT_GE(found.size(), 2u);
  EXPECT_NE(found[0].find("request 1 position 0 block 2"), std::string::npos);
  EXPECT_NE(found[0].find("content of request 1 position 4"), std::string::npos);
  EXPECT_NE(found[1].find("request 1 position 4 block 1"), std::string::npos);
}

TEST_F(checking_executor_test, stale_content_of_another_request_is_named) {
  step(7, {4, 5, 6}, 0, {20, 21, 22, 23, 24, 25, 26, 27, 28});
  const auto first = step(1, {1, 2, 3}, 0, prompt);
  std::memcpy(block(2), block(5), block_bytes);
  step(1, {1, 2, 3}, 9, {first}, 1);
  expect_violation({"request 1 position 4 block 2", "content of request 7 position 4"});
}

TEST_F(checking_executor_test, foreign_prefix_without_registration_is_named) {
  step(7, {4, 5, 6}, 0, {20, 21, 22, 23, 24, 25, 26, 27, 28});
  step(1, {1, 2, 3}, 0, prompt);
  step(8, {1, 5, 9}, 8, {13});  // never seen before: first block of one, second block of another
  EXPECT_NE(executor.violations().at(0).find("request 8 position 4 block 5: expected a continuation"),
            std::string::npos);
}

TEST_F(checking_executor_test, registered_prompt_exposes_a_hit_on_another_prompt) {
  step(1, {1, 2, 3}, 0, prompt);
  auto other = prompt;
  other[2] = 99;
  executor.expect(request_id{2}, other);
  step(2, {1, 2, 4}, 8, {13});
  EXPECT_NE(executor.violations().at(0).find("request 2 position 2 block 1"), std::string::npos);
}

TEST_F(checking_executor_test, half_written_block_is_named) {
  const auto first = step(1, {1, 2, 3}, 0, prompt);
  std::memset(block(2) + block_bytes / 2, 0, block_bytes / 2);
  step(1, {1, 2, 3}, 9, {first}, 1);
  expect_violation({"request 1 position 6 block 2", "zeros"});
}

TEST_F(checking_executor_test, torn_last_word_is_named_even_when_tokens_are_unknown) {
  step(1, {1, 2, 3}, 0, prompt);
  block(2)[block_bytes - 1] ^= std::byte{1};
  step(2, {1, 2, 4}, 8, {13});
  expect_violation({"request 2 position 7 block 2 word 7", "unknown content"});
}

TEST_F(checking_executor_test, every_single_bit_of_a_block_counts) {
  const auto first = step(1, {1, 2, 3}, 0, prompt);
  const auto expected = executor.reference(prompt, 2)[1];
  for (std::size_t i = 0; i < block_bytes; ++i) {
    block(1)[i] ^= std::byte{4};
    step_batch batch{step_id{1}, {entry(1, {1, 2, 3}, 9, {first}, 1)}};
    const auto before = executor.num_violations();
    run(batch);
    EXPECT_GT(executor.num_violations(), before) << "byte " << i;
    block(1)[i] ^= std::byte{4};
  }
  const auto before = executor.num_violations();
  EXPECT_EQ(step(1, {1, 2, 3}, 9, {first}, 1), expected);
  EXPECT_EQ(executor.num_violations(), before);
}

TEST_F(checking_executor_test, older_epoch_is_named_and_outputs_stay_the_same) {
  const auto first = step(1, {1, 2, 3}, 0, prompt);
  executor.begin_epoch();
  EXPECT_EQ(step(1, {4, 5, 6}, 0, prompt), first);
  EXPECT_TRUE(executor.violations().empty());
  step(2, {1, 2, 7}, 8, {13});
  EXPECT_NE(executor.violations().at(0).find("request 2 position 0 block 1"), std::string::npos);
  EXPECT_NE(executor.violations().at(0).find("of an older epoch"), std::string::npos);
}

TEST_F(checking_executor_test, resumed_request_must_replay_its_tokens) {
  const auto first = step(1, {1, 2, 3}, 0, prompt);
  auto replay = prompt;
  replay.push_back(first + 1);
  step(1, {4, 5, 6}, 0, replay, 1);
  EXPECT_NE(executor.violations().at(0).find("request 1 position 9: token"), std::string::npos);
}

TEST_F(checking_executor_test, writing_a_block_that_another_request_reads_is_named) {
  const auto first = step(1, {1, 2, 3}, 0, prompt);
  step_batch batch{step_id{2}, {entry(1, {1, 2, 3}, 9, {first}, 1), entry(2, {2}, 0, {1, 2, 3})}};
  run(batch);
  expect_violation({"request 2 block 2", "such as 1"});
}

TEST_F(checking_executor_test, bad_tables_and_tokens_are_named) {
  step(1, {0}, 0, {5});
  step(2, {num_blocks}, 0, {5});
  step(3, {1}, 0, {5, 6, 7, 8, 9});
  step(4, {2}, 0, {-2});
  step(5, {1}, 8, {5});
  const auto found = executor.violations();
  ASSERT_GE(found.size(), 5u);
  EXPECT_NE(found[0].find("request 1 position 0 block 0: the null block"), std::string::npos);
  EXPECT_NE(found[1].find("request 2 position 0 block 64"), std::string::npos);
  EXPECT_NE(found[2].find("request 3 position 4: the block table does not cover it"), std::string::npos);
  EXPECT_NE(found[3].find("request 4 position 0: no such token: -2"), std::string::npos);
}

TEST_F(checking_executor_test, scripts_force_tokens_here_and_in_the_reference) {
  executor.script(prompt, {{0, 42}, {2, 256}});
  const auto expected = executor.reference(prompt, 10);
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_EQ(expected[0], 42);
  EXPECT_EQ(expected[2], 256);
  EXPECT_EQ(step(1, {1, 2, 3}, 0, prompt), 42);
  EXPECT_EQ(step(1, {1, 2, 3}, 9, {42}, 1), expected[1]);
  EXPECT_EQ(step(1, {1, 2, 3}, 10, {expected[1]}, 2), 256);
  EXPECT_TRUE(executor.violations().empty());
}

TEST_F(checking_executor_test, draws_depend_on_seed_and_output_position_only_when_not_greedy) {
  request_params params{request_id{1}, prompt, 8, {0.0, 1}, true, ""};
  const auto greedy = executor.reference(params);
  params.sampling.seed = 2;
  EXPECT_EQ(executor.reference(params), greedy);
  params.sampling.temperature = 1;
  const auto drawn = executor.reference(params);
  EXPECT_NE(drawn, greedy);
  EXPECT_EQ(executor.reference(params), drawn);
}

TEST_F(checking_executor_test, end_tokens_come_at_the_configured_rate) {
  checking_executor_options options;
  options.end_one_in = 16;
  const checking_executor ending(options);
  const request_params params{request_id{1}, prompt, 1600, {}, true, ""};
  const auto output = ending.reference(params);
  const auto num_ends = std::count(output.begin(), output.end(), options.end_token);
  EXPECT_GT(num_ends, 50);
  EXPECT_LT(num_ends, 200);
  EXPECT_EQ(ending.reference(prompt, 1600).back(), options.end_token);
}

}  // namespace
}  // namespace sluice
