// SPDX-License-Identifier: Apache-2.0
#include "checking_memory.hpp"

#include <cassert>
#include <cstring>
#include <numeric>

#include "checking_content.hpp"

namespace sluice::inline v0 {

using namespace checking_content;

std::size_t checking_memory::bytes_per_block(const std::vector<kv_group_spec>& groups, std::size_t bytes_per_token) {
  std::size_t unit = 1;
  for (const auto& group : groups) unit = std::lcm(unit, std::size_t{group.block_size});
  return unit * bytes_per_token;
}

void checking_memory::bind(const kv_memory& memory, std::vector<kv_group_spec> groups, std::size_t bytes_per_token) {
  memory_ = memory;
  groups_.clear();
  std::size_t block_bytes = 0;
  for (const auto& segment : memory.segments.at(0)) block_bytes += segment.bytes_per_block;
  if (groups.size() == 1) groups[0].block_size = static_cast<std::uint32_t>(block_bytes / bytes_per_token);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& spec = groups[g];
    const bool is_window = spec.attention == kv_group_spec::kind::sliding_window;
    const auto token_bytes = block_bytes / spec.block_size;
    assert(token_bytes % word_bytes == 0 && token_bytes > 0);
    groups_.push_back({spec.block_size, is_window ? spec.window_tokens : 0, token_bytes, token_bytes / word_bytes,
                       g == 0 ? 0 : mix(g * word_step)});
  }
}

std::uint32_t checking_memory::first_read_at(std::size_t group, std::uint32_t position) const {
  const auto window = groups_[group].window_tokens;
  return window == 0 || position < window ? 0 : position - window + 1;
}

std::byte* checking_memory::word_at(std::size_t group, block_id block, std::uint32_t position,
                                    std::size_t index) const {
  const auto& view = groups_[group];
  auto offset = position % view.block_size * view.bytes_per_token + index * word_bytes;
  for (const auto& segment : memory_.segments[group]) {
    if (offset < segment.bytes_per_block) return segment.base + block.value * segment.stride_bytes + offset;
    offset -= segment.bytes_per_block;
  }
  return nullptr;
}

std::uint64_t checking_memory::load_word(std::size_t group, block_id block, std::uint32_t position,
                                         std::size_t index) const {
  std::uint64_t word = 0;
  std::memcpy(&word, word_at(group, block, position, index), word_bytes);
  return word ^ groups_[group].mask;
}

std::uint64_t checking_memory::word_of_block(std::size_t group, std::span<const std::byte> block, std::uint32_t position,
                                            std::size_t index) const {
  const auto& view = groups_[group];
  std::uint64_t word = 0;
  std::memcpy(&word, block.data() + position % view.block_size * view.bytes_per_token + index * word_bytes, word_bytes);
  return word ^ view.mask;
}

void checking_memory::store_word(std::size_t group, block_id block, std::uint32_t position, std::size_t index,
                                 std::uint64_t word) {
  word ^= groups_[group].mask;
  std::memcpy(word_at(group, block, position, index), &word, word_bytes);
}

}  // namespace sluice::inline v0
