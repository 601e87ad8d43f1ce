// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/executor/tiny/tiny_kernels.hpp>
#include <sluice/actors/executor/tiny/tiny_sampler.hpp>
#include <sluice/actors/request/byte_tokenizer.hpp>

#include "tiny_fixture.hpp"

namespace sluice {
namespace {

using unit::bits;
using unit::equal_bits;

struct tiny_model_test : unit::tiny_fixture {};

/// What holds of the model without a window and with one.
struct any_tiny_model : unit::tiny_fixture, ::testing::WithParamInterface<std::uint32_t> {
  any_tiny_model() : tiny_fixture(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(window, any_tiny_model, ::testing::Values(0U, 24U), ::testing::PrintToStringParamName());

TEST_F(tiny_model_test, describes_itself) {
  const auto info = model.info();
  EXPECT_EQ(info.name, "tiny-0");
  EXPECT_EQ(info.dtype, "float32");
  EXPECT_EQ(info.vocab_size, byte_tokenizer::vocab_size);
  EXPECT_EQ(info.max_model_len, 2048u);
  EXPECT_EQ(info.end_tokens, std::vector<token_id>{byte_tokenizer::end_token});
  const auto spec = model.kv(16);
  ASSERT_EQ(spec.groups.size(), 1u);
  EXPECT_EQ(spec.groups[0].block_size, 16u);
  EXPECT_EQ(spec.bytes_per_block, 16 * tiny::kv_bytes_per_token);
}

// Guards: every KV entry counts, in whatever layer and position, K and V.
TEST_F(tiny_model_test, one_flipped_kv_entry_anywhere_changes_the_logits) {
  const std::uint32_t size = 300;
  const auto tokens = text(size);
  run({entry(1, table(1), 0, tokens)});
  const auto right = logits;
  const std::vector<token_id> last = {tokens.back()};
  auto* const values = reinterpret_cast<float*>(memory.data());
  const auto floats_per_block = bytes_per_block / sizeof(float);
  const auto floats_per_part = floats_per_block / tiny::num_layers / 2;
  std::uint32_t num_flips = 0;
  for (std::uint32_t position = 0; position + 1 < size; position += 13)
    for (std::size_t part = 0; part < 2 * tiny::num_layers; ++part)
      for (std::size_t dim = position % 3; dim < tiny::kv_dim; dim += 3) {
        auto& value = values[(1 + position / 16) * floats_per_block + part * floats_per_part +
                             position % 16 * tiny::kv_dim + dim];
        const float kept = std::exchange(value, value > 0 ? value - 1 : value + 1);
        run({entry(1, table(1), size - 1, last)});
        EXPECT_FALSE(equal_bits(logits, right)) << position << " " << part << " " << dim;
        value = kept;
        ++num_flips;
      }
  EXPECT_GT(num_flips, 1800u);
  run({entry(1, table(1), size - 1, last)});
  EXPECT_TRUE(equal_bits(logits, right));
}

TEST_P(any_tiny_model, chunking_block_ids_and_block_size_do_not_change_a_bit) {
  const auto tokens = text(100);
  run({entry(1, table(1), 0, tokens)});
  const auto whole = logits;
  for (const std::uint32_t chunk : {1u, 7u, 16u, 33u}) {
    for (std::uint32_t first = 0; first < 100; first += chunk) {
      const auto begin = tokens.begin() + first;
      run({entry(1, table(120, -3u, 10), first, {begin, begin + std::min(chunk, 100 - first)})});
    }
    EXPECT_TRUE(equal_bits(logits, whole)) << chunk;
  }
  for (const std::uint32_t block_size : {1u, 5u, 64u}) {
    bind(block_size);
    run({entry(1, table(1, 1, 120), 0, tokens)});
    EXPECT_TRUE(equal_bits(logits, whole)) << block_size;
  }
}

TEST_P(any_tiny_model, the_rest_of_the_batch_does_not_change_a_bit) {
  std::vector<batch_entry> batch;
  for (std::uint32_t i = 0; i < 5; ++i) batch.push_back(entry(i, table(1 + 10 * i, 1, 10), 0, text(90 + 11 * i, i)));
  run(batch);
  const auto together = all_logits;
  for (const auto& alone : batch) {
    run({alone});
    EXPECT_TRUE(equal_bits(logits, together.at(alone.request.value)));
  }
}

TEST_F(tiny_model_test, resume_recomputes_the_same_bits) {
  const auto prompt = text(40);
  const auto output = generate(prompt, 60);
  const auto last = logits;
  auto replay = prompt;
  replay.insert(replay.end(), output.begin(), output.end() - 1);
  EXPECT_EQ(run({entry(1, table(100, 3), 0, replay)}).at(0).token, output.back());
  EXPECT_TRUE(equal_bits(logits, last));
}

TEST_F(tiny_model_test, entries_that_do_not_sample_append_nothing) {
  auto quiet = entry(1, table(1), 0, text(20));
  quiet.samples = false;
  const auto sampled = run({quiet, entry(2, table(50), 0, text(20))});
  ASSERT_EQ(sampled.size(), 1u);
  EXPECT_EQ(sampled[0].request, request_id{2});
}

// Guards: a step that was dispatched before its token was known computes the same.
TEST_F(tiny_model_test, a_pending_token_is_what_the_step_before_sampled) {
  const auto prompt = text(20);
  const auto first = run({entry(9, table(50), 0, text(5)), entry(1, table(1), 0, prompt)});
  const auto known = run({entry(1, table(1), 20, {first[1].token})});
  const auto right = logits;
  auto pending = entry(1, table(1), 20, {pending_token});
  pending.previous_sample = 1;
  EXPECT_EQ(run({pending}, first), known);
  EXPECT_TRUE(equal_bits(logits, right));
}

TEST_F(tiny_model_test, a_pending_token_that_a_failed_step_never_sampled_is_no_crash) {
  auto pending = entry(1, table(1), 0, {pending_token});
  pending.previous_sample = 3;
  EXPECT_EQ(run({pending}, {{{1}, {1}, 'a'}}).size(), 1u);
}

TEST_P(any_tiny_model, released_weights_come_back_the_same) {
  const auto name = model.info().name;
  const auto before = generate(text(30), 20);
  const auto right = logits;
  ASSERT_TRUE(model.release_weights());
  std::vector<sampled_token> sampled;
  EXPECT_FALSE(model.enqueue({step_id{1}, {entry(1, table(1), 0, {'a'})}}, {}, stream, sampled));
  EXPECT_TRUE(sampled.empty());
  EXPECT_EQ(model.info().name, name);
  ASSERT_TRUE(model.restore_weights());
  ASSERT_TRUE(model.restore_weights());
  EXPECT_EQ(generate(text(30), 20), before);
  EXPECT_TRUE(equal_bits(logits, right));
}

// Guards: text that a person can look at, for any prompt.
TEST_P(any_tiny_model, greedy_text_is_varied_and_printable) {
  const byte_tokenizer tokenizer;
  for (const std::string prompt : {"Hello", "a", " ", "\n\n\n", "The quick brown fox", "aaaaaaaaaaaaaaaaaaaaaaaaaa",
                                   "0123456789", "\xf0\x9f\x98\x80", "Once upon a time, there was a cache."}) {
    const auto output = generate(tokenizer.encode(prompt), 64);
    EXPECT_GE(std::set<token_id>(output.begin(), output.end()).size(), 10u) << prompt;
    for (const auto token : output)
      EXPECT_TRUE(token == byte_tokenizer::end_token || token == '\n' || (token >= ' ' && token < 127)) << token;
  }
}

TEST_F(tiny_model_test, end_token_is_rare_but_comes) {
  std::size_t num_ends = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto output = generate(text(10), 1000, {1.0, seed});
    num_ends += static_cast<std::size_t>(std::count(output.begin(), output.end(), byte_tokenizer::end_token));
  }
  EXPECT_GT(num_ends, 0u);
  EXPECT_LT(num_ends, 80u);
}

TEST_F(tiny_model_test, weights_follow_from_the_seed) {
  const auto weights = tiny::make_weights(5);
  const auto again = tiny::make_weights(5);
  const auto other = tiny::make_weights(6);
  EXPECT_EQ(weights->head, again->head);
  EXPECT_NE(weights->head, other->head);
  std::mt19937_64 random(5);
  const float first = std::sqrt(3.0f) * (static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f);
  EXPECT_EQ(weights->embedding[0], first);
}

TEST_F(tiny_model_test, a_step_lasts_at_least_min_step) {
  tiny_model_options slow;
  slow.min_step = std::chrono::milliseconds(20);
  slow.max_model_len = 64;
  tiny_model sleeper(slow);
  bind(sleeper);
  const step_batch batch{step_id{1}, {entry(1, table(1), 0, {'a'})}};
  std::vector<sampled_token> sampled;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(sleeper.enqueue(batch, {}, stream, sampled));
  EXPECT_GE(std::chrono::steady_clock::now() - start, slow.min_step);
}

TEST(tiny_sampler, greedy_takes_the_lowest_id_among_equals) {
  const bits logits = {0, 3, 1, 3, 2};
  EXPECT_EQ(tiny::sample_token(logits, {}, 0), 1);
}

TEST(tiny_sampler, draws_are_a_function_of_seed_and_position) {
  EXPECT_EQ(tiny::uniform_draw(1, 2), tiny::uniform_draw(1, 2));
  EXPECT_NE(tiny::uniform_draw(1, 2), tiny::uniform_draw(1, 3));
  EXPECT_NE(tiny::uniform_draw(1, 2), tiny::uniform_draw(2, 2));
  double total = 0;
  for (std::uint32_t i = 0; i < 10000; ++i) total += tiny::uniform_draw(7, i);
  EXPECT_NEAR(total / 10000, 0.5, 0.02);
}

TEST(tiny_sampler, frequencies_follow_the_softmax) {
  const bits logits = {0.0f, std::log(3.0f)};
  int num_ones = 0;
  for (std::uint32_t i = 0; i < 10000; ++i) num_ones += tiny::sample_token(logits, {1.0, 3}, i);
  EXPECT_NEAR(num_ones / 10000.0, 0.75, 0.02);
  EXPECT_EQ(tiny::sample_token(logits, {1e-6, 3}, 0), 1);
}

TEST(tiny_kernels, exp_is_close_to_the_library) {
  for (float x = -79.9f; x < 79.0f; x += 0.0371f) {
    const float ours = tiny::exp(tiny::splat(x))[0];
    EXPECT_NEAR(ours / std::exp(x), 1.0f, 1e-6f) << x;
  }
  EXPECT_GT(tiny::exp(tiny::splat(-1e30f))[0], 0.0f);
  EXPECT_EQ(tiny::exp(tiny::splat(0.0f))[0], 1.0f);
}

}  // namespace
}  // namespace sluice
