// SPDX-License-Identifier: Apache-2.0
//
// The test engine over a scripted tier, and the keys under which the tier knows the chunks of a request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <sluice/actors/scheduler/block_hasher.hpp>

#include "scripted_tier.hpp"
#include "test_engine.hpp"

namespace sluice::testing {

/// Puts a scripted tier into `options`. It lives as long as the engine that is made of them.
inline scripted_tier& script_tier(engine_options& options) {
  auto owned = std::make_unique<scripted_tier>(options.num_host_slots);
  auto& tier = *owned;
  options.tier = std::move(owned);
  return tier;
}

/// Of the whole chunks of `tokens`, without a salt.
inline std::vector<chunk_key> chunk_keys(const test_engine& engine, const std::vector<token_id>& tokens,
                                         std::uint16_t group = 0) {
  const auto info = engine.model.info();
  const auto kv = engine.model.kv(engine.options.block_size);
  const block_hasher hasher(
      {info.name, info.dtype, kv.bytes_per_block, kv.groups.at(group).block_size, group_id{group}});
  std::vector<content_key> blocks;
  hasher.extend(tokens, "", blocks);
  std::vector<chunk_key> chunks;
  for (std::size_t end = engine.options.blocks_per_chunk; end <= blocks.size(); end += engine.options.blocks_per_chunk)
    chunks.push_back({blocks[end - 1], group_id{group}});
  return chunks;
}

}  // namespace sluice::testing
