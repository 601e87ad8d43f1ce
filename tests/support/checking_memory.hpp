// SPDX-License-Identifier: Apache-2.0
//
// The checking executor's view of the KV memory: words of positions, group by group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>

namespace sluice::inline v0 {

/// Position p of a block of group g holds the words chain(p) + i * step, i = 0, 1, ..., masked with the epoch and the
/// group, so that a block of another group is wrong too. Not synchronised.
class checking_memory {
 public:
  /// Bytes of a block, the same for every group: `bytes_per_token` times the least common multiple of block sizes.
  static std::size_t bytes_per_block(const std::vector<kv_group_spec>& groups, std::size_t bytes_per_token);

  /// With one group its block size follows from the memory and `bytes_per_token`.
  void bind(const kv_memory& memory, std::vector<kv_group_spec> groups, std::size_t bytes_per_token);

  std::size_t num_groups() const { return groups_.size(); }
  std::uint32_t num_blocks() const { return memory_.num_blocks; }
  std::uint32_t block_size(std::size_t group) const { return groups_[group].block_size; }
  std::size_t num_words(std::size_t group) const { return groups_[group].num_words; }
  /// The first position that is read to compute `position`.
  std::uint32_t first_read_at(std::size_t group, std::uint32_t position) const;

  /// Without the mask of the group, with that of the epoch.
  std::uint64_t load_word(std::size_t group, block_id block, std::uint32_t position, std::size_t index) const;
  /// The same of a block elsewhere, whose bytes are contiguous.
  std::uint64_t word_of_block(std::size_t group, std::span<const std::byte> block, std::uint32_t position,
                              std::size_t index) const;
  void store_word(std::size_t group, block_id block, std::uint32_t position, std::size_t index, std::uint64_t word);

 private:
  struct group_view {
    std::uint32_t block_size = 0;
    std::uint32_t window_tokens = 0;  // 0: full attention
    std::size_t bytes_per_token = 0;
    std::size_t num_words = 0;
    std::uint64_t mask = 0;
  };

  std::byte* word_at(std::size_t group, block_id block, std::uint32_t position, std::size_t index) const;

  kv_memory memory_;
  std::vector<group_view> groups_;
};

}  // namespace sluice::inline v0
