// SPDX-License-Identifier: Apache-2.0
//
// A tiny model with its memory, and the logits that it produced last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/executor/tiny/tiny_model.hpp>

#include <support/immediate_stream.hpp>

namespace sluice::unit {

using bits = std::vector<float>;

/// Group g of a request has its own blocks: those of the table that is given, moved on by 128 * g.
struct tiny_fixture : ::testing::Test {
  static constexpr std::uint32_t num_blocks = 256;
  static constexpr std::uint32_t group_distance = 128;

  explicit tiny_fixture(std::uint32_t window_tokens = 0) : model(options(window_tokens)) { bind(16); }

  void bind(std::uint32_t block_size) {
    bytes_per_block = model.kv(block_size).bytes_per_block;
    memory.assign(bytes_per_block * num_blocks, std::byte{0xff});  // all NaN
    bind(model);
  }

  /// Every group over the same memory.
  void bind(tiny_model& which) {
    const std::vector<kv_segment> pool = {{memory.data(), bytes_per_block, bytes_per_block}};
    which.bind({num_blocks, std::vector(which.kv(16).groups.size(), pool)});
  }

  tiny_model_options options(std::uint32_t window_tokens) {
    tiny_model_options made;
    made.max_model_len = 2048;
    made.window_tokens = window_tokens;
    made.observe_logits = [this](const batch_entry& entry, std::span<const float> values) {
      logits.assign(values.begin(), values.end());
      all_logits[entry.request.value] = logits;
    };
    return made;
  }

  /// Blocks first, first + stride, ...
  static std::vector<block_id> table(std::uint32_t first, std::uint32_t stride = 1, std::uint32_t size = 40) {
    std::vector<block_id> made;
    for (std::uint32_t i = 0; i < size; ++i) made.push_back(block_id{first + i * stride});
    return made;
  }

  batch_entry entry(std::uint64_t request, const std::vector<block_id>& blocks, std::uint32_t first,
                    std::vector<token_id> tokens) const {
    batch_entry made;
    made.request = request_id{request};
    made.first_position = first;
    made.tokens = std::move(tokens);
    made.block_tables.resize(model.kv(16).groups.size());
    for (std::uint32_t group = 0; group < made.block_tables.size(); ++group)
      for (const auto block : blocks)
        made.block_tables[group].push_back({(block.value + group * group_distance) % num_blocks});
    made.samples = true;
    return made;
  }

  std::vector<sampled_token> run(std::vector<batch_entry> entries, const std::vector<sampled_token>& previous = {}) {
    std::vector<sampled_token> sampled;
    EXPECT_TRUE(model.enqueue({step_id{1}, std::move(entries)}, previous, stream, sampled));
    return sampled;
  }

  std::vector<token_id> generate(std::vector<token_id> tokens, std::uint32_t num_tokens,
                                 sampling_params sampling = {}) {
    std::vector<token_id> output;
    std::uint32_t position = 0;
    while (output.size() < num_tokens) {
      auto next = entry(1, table(1, 1, 100), position, tokens);
      next.output_position = static_cast<std::uint32_t>(output.size());
      next.sampling = sampling;
      position += static_cast<std::uint32_t>(tokens.size());
      tokens = {run({next}).at(0).token};
      output.push_back(tokens[0]);
    }
    return output;
  }

  static std::vector<token_id> text(std::uint32_t size, std::uint32_t salt = 0) {
    std::vector<token_id> made;
    for (std::uint32_t i = 0; i < size; ++i) made.push_back(static_cast<token_id>('a' + (i * i + 7 * i + salt) % 26));
    return made;
  }

  bits logits;
  std::map<std::uint64_t, bits> all_logits;
  tiny_model model;
  testing::immediate_stream stream;
  std::vector<std::byte> memory;
  std::size_t bytes_per_block = 0;
};

inline bool equal_bits(const bits& a, const bits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace sluice::unit
