// SPDX-License-Identifier: Apache-2.0
//
// The test engine with several KV groups, in both schedulings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "test_engine.hpp"

namespace sluice::testing {

inline constexpr auto full = kv_group_spec::kind::full_attention;
inline constexpr auto window = kv_group_spec::kind::sliding_window;

struct grouped_scenario : both_schedulings {
  /// Blocks of 4 tokens where a group does not say otherwise, one block per chunk, and a host tier with room for all.
  static engine_options grouped(std::vector<kv_group_spec> groups, std::uint32_t num_device_blocks = 100) {
    auto options = sized(4, 1, num_device_blocks);
    options.num_host_slots = 1024;
    options.async_scheduling = GetParam();
    options.model.groups = std::move(groups);
    return options;
  }

  static std::vector<token_id> first_tokens(const std::vector<token_id>& tokens, std::ptrdiff_t count) {
    return {tokens.begin(), tokens.begin() + count};
  }
};

}  // namespace sluice::testing
