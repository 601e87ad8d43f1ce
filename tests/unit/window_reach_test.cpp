// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/window_reach.hpp>

namespace sluice {
namespace {

using numbers = std::vector<std::uint32_t>;

/// The reachable units of a request that has its prompt and nothing else.
numbers reachable(const window_reach& reach, std::uint32_t num_prompt_tokens) {
  numbers found;
  for (std::uint32_t unit = 0; unit < num_prompt_tokens / reach.tokens_per_unit; ++unit)
    if (reach_of(reach, unit, num_prompt_tokens, num_prompt_tokens) == unit_reach::reachable) found.push_back(unit);
  return found;
}

// Guards: scenario O030, a chunk survives if any of its blocks does, whatever the number of blocks per chunk.
TEST(window_reach, o030_the_chunk_factor_does_not_change_the_tail) {
  const std::vector<numbers> expected{{2, 3, 6, 7}, {3, 7}, {3, 7}};
  for (std::uint32_t factor = 1; factor <= 3; ++factor) {
    const window_reach chunks{8, 4 * factor, 16 * factor, {}};
    EXPECT_EQ(reachable(chunks, 8 * 4 * factor), expected[factor - 1]) << factor;
    std::set<std::uint32_t> of_blocks;
    for (const auto block : reachable({8, 4, 16 * factor, {}}, 8 * 4 * factor)) of_blocks.insert(block / factor);
    EXPECT_EQ(numbers(of_blocks.begin(), of_blocks.end()), expected[factor - 1]) << factor;
  }
}

// Guards: scenario O122, window blocks that can serve no hit are not indexed; past the last boundary none can.
TEST(window_reach, o122_blocks_past_the_last_common_boundary_serve_nothing) {
  EXPECT_EQ(reachable({8, 8, 32, {}}, 64), (numbers{3, 7}));
  const window_reach reach{32, 16, 32, {}};
  EXPECT_EQ(reachable(reach, 112), (numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(reach_of(reach, 6, 112, 112), unit_reach::not_yet);
  EXPECT_EQ(reach_of(reach, 6, 112, 128), unit_reach::reachable);
}

// Guards: scenario O126, a retention interval thins the boundaries, and the replayed one stays.
TEST(window_reach, o126_retention_interval) {
  EXPECT_EQ(reachable({8, 8, 32, 64}, 128), (numbers{7, 11, 15}));
  EXPECT_EQ(reachable({8, 8, 32, 0}, 128), (numbers{11}));
  EXPECT_EQ(replay_boundary(128, 32), 96U);
  EXPECT_EQ(reachable({16, 16, 16, 64}, 256), (numbers{3, 7, 11, 14, 15}));
  EXPECT_EQ(reachable({16, 16, 16, 0}, 256), (numbers{14}));
  EXPECT_EQ(replay_boundary(256, 16), 240U);
  EXPECT_EQ(reachable({16, 16, 16, {}}, 256).size(), 16U);
}

// Guards: scenario O126 (d), an interval that is no multiple of the unit, or negative, is refused with a reason.
TEST(window_reach, o126_checks_the_interval) {
  EXPECT_NE(check_retention_interval(33, 32).find("not a multiple of 32"), std::string::npos);
  EXPECT_NE(check_retention_interval(-32, 32).find("negative"), std::string::npos);
  EXPECT_NE(check_retention_interval(std::int64_t{1} << 40, 32).find("too large"), std::string::npos);
  EXPECT_EQ(check_retention_interval(64, 32), "");
  EXPECT_EQ(check_retention_interval(0, 32), "");
  EXPECT_EQ(check_retention_interval({}, 32), "");
}

// Guards: scenarios O027 and O029, with a decoded token the replayed boundary is still that of the prompt.
TEST(window_reach, o027_o029_the_replayed_boundary_is_the_prompts) {
  auto stored = [](std::uint32_t interval) {
    numbers found;
    for (std::uint32_t chunk = 0; chunk < 16; ++chunk)
      if (reach_of({8, 4, 16, interval}, chunk, 64, 65) == unit_reach::reachable) found.push_back(chunk);
    return found;
  };
  EXPECT_EQ(stored(32), (numbers{6, 7, 10, 11, 14, 15}));
  EXPECT_EQ(stored(0), (numbers{10, 11}));
}

// Guards: scenario O028, the end of a running request is not an end: decoding makes no chunk before it reachable.
TEST(window_reach, o028_decoding_makes_no_running_end_final) {
  const window_reach reach{16, 4, 36, {}};
  for (std::uint32_t num_tokens = 1200; num_tokens <= 1212; ++num_tokens)
    EXPECT_EQ(reach_of(reach, 300, 1200, num_tokens), unit_reach::never) << num_tokens;
  EXPECT_EQ(reach_of(reach, 302, 1200, 1212), unit_reach::not_yet);  // before 1224
  EXPECT_EQ(reach_of(reach, 302, 1200, 1224), unit_reach::reachable);
  EXPECT_EQ(reach_of(reach, 296, 1200, 1212), unit_reach::reachable);  // before 1188
}

// Guards: a window of one token sees nothing before it, and a prompt of one token is never served.
TEST(window_reach, smallest_windows_and_prompts) {
  EXPECT_EQ(reachable({1, 4, 4, {}}, 64), numbers{});
  EXPECT_EQ(reachable({2, 4, 8, {}}, 24), (numbers{1, 3, 5}));
  EXPECT_EQ(replay_boundary(0, 4), 0U);
  EXPECT_EQ(replay_boundary(1, 4), 0U);
  EXPECT_EQ(replay_boundary(5, 4), 4U);
}

// Guards: a chunk is reachable exactly if a window before a retained boundary meets it, for any sizes.
TEST(window_reach, agrees_with_the_definition) {
  for (std::uint32_t window = 1; window <= 20; ++window)
    for (std::uint32_t unit_tokens : {1, 3, 4, 8})
      for (std::uint32_t alignment : {4, 12, 24}) {
        const std::uint32_t num_tokens = 100;
        for (std::uint32_t unit = 0; unit < num_tokens / unit_tokens; ++unit) {
          bool is_needed = false;
          for (auto boundary = alignment; boundary <= num_tokens; boundary += alignment)
            for (auto token = boundary - std::min(boundary, window - 1); token < boundary; ++token)
              is_needed |= token / unit_tokens == unit;
          const auto reach = reach_of({window, unit_tokens, alignment, {}}, unit, num_tokens, num_tokens);
          EXPECT_EQ(reach == unit_reach::reachable, is_needed) << window << " " << unit_tokens << " " << alignment;
        }
      }
}

}  // namespace
}  // namespace sluice
