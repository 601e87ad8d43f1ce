// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of how several KV groups share the pool of blocks.
#include <set>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/kv_shape.hpp>
#include <support/kv_groups.hpp>

namespace sluice::testing {
namespace {

struct scenario_group_blocks : grouped_scenario {};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_group_blocks);

// O120. Guards: blocks of a window that can serve no hit are given away before any that can.
TEST_P(scenario_group_blocks, o120_window_blocks_without_content_go_first) {
  auto options = grouped({{full, 0, 32}, {window, 8, 8}});
  options.num_host_slots = 0;
  test_engine engine(std::move(options));
  const auto prompt = make_prompt(128);
  engine.complete_request(prompt, 1);
  EXPECT_EQ(engine.snapshot().blocks.cached, 8U);  // the window's {3, 7, 11, 15}
  engine.complete_request(make_prompt(576, 101), 1);  // takes 18 + 72 of the other 91
  EXPECT_EQ(engine.totals().device_evictions, 0U);
  const auto again = engine.complete_request(prompt + std::vector<token_id>{201}, 1);
  EXPECT_EQ(engine.record(again).summary->usage.num_device_cached_tokens, 128U);
  engine.expect_reference(again);
}

/// Blocks of all groups that the request last ran with, each as often as it stands there.
std::vector<std::uint32_t> blocks_in_tables(test_engine& engine, request_id id) {
  std::vector<std::uint32_t> blocks;
  const auto entries = engine.traffic().entries_of(id);
  for (const auto& table : entries.at(entries.size() - 1).block_tables)
    for (auto block : table) blocks.push_back(block.value);
  return blocks;
}

// O124, blocks of 16 tokens. The blocks that the request hits stand first in line to be given away. Guards: what it
// loads and computes goes to other blocks, in every group, at each admission.
TEST_P(scenario_group_blocks, o124_hits_and_loaded_blocks_are_never_the_same) {
  for (const std::uint32_t num_groups : {2U, 3U}) {
    SCOPED_TRACE(num_groups);
    std::vector<kv_group_spec> groups(num_groups, {window, 128, 16});
    groups[0] = {full, 0, 16};
    test_engine engine(grouped(groups, 31));
    const auto prompt = make_prompt(116);
    engine.warm_host(first_tokens(prompt, 112));
    engine.complete_request(first_tokens(prompt, 80), 1);
    const auto num_free = static_cast<std::uint32_t>(engine.snapshot().blocks.free);
    EXPECT_EQ(num_free, 30 - 5 * num_groups);
    engine.complete_request(make_prompt(num_free / num_groups * 16, 151), 1);
    EXPECT_EQ(engine.snapshot().blocks.free, 0U);
    const auto id = engine.submit(prompt, 8);
    for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
      SCOPED_TRACE(attempt);
      engine.run();
      while (!engine.stores().empty()) engine.complete(engine.stores()[0]);
      ASSERT_EQ(engine.loads().size(), 1U);
      EXPECT_EQ(engine.request(id)->num_blocks, 7 * num_groups);
      EXPECT_EQ(engine.snapshot().blocks.held, 7 * num_groups);
      ASSERT_TRUE(engine.device.complete_copies(engine.loads()[0].value));
      ASSERT_TRUE(engine.system.run_until([&] {
        const auto entries = engine.traffic().entries_of(id);
        return !entries.empty() && entries.back().attempt.value == attempt;
      }));
      const auto blocks = blocks_in_tables(engine, id);
      EXPECT_EQ(blocks.size(), 8 * num_groups);
      EXPECT_EQ(std::set<std::uint32_t>(blocks.begin(), blocks.end()).size(), blocks.size());
      EXPECT_EQ(engine.snapshot().blocks.held, 8 * num_groups);
      EXPECT_EQ(engine.faults(), std::vector<std::string>{});
      if (attempt == 1) {
        EXPECT_TRUE(engine.reset(true, false).success);
      }
    }
    engine.run_to_idle();
    engine.expect_reference(id);
    EXPECT_EQ(engine.record(id).summary->usage.num_preemptions, 1U);
  }
}

// Guards: blocks behind the window come back while the request runs, also while their stores are held.
TEST_P(scenario_group_blocks, blocks_behind_the_window_come_back_early) {
  for (bool has_full : {false, true}) {
    SCOPED_TRACE(has_full);
    std::vector<kv_group_spec> groups{{window, 8, 4}};
    if (has_full) groups.insert(groups.begin(), {full, 0, 4});
    test_engine engine(grouped(groups));
    const auto id = engine.submit(make_prompt(10), 80);
    ASSERT_TRUE(engine.run_until_tokens(id, 80));
    EXPECT_LE(engine.request(id)->num_blocks, 4U + (has_full ? 21U : 0U));
    EXPECT_EQ(engine.request(id)->num_blocks, engine.snapshot().blocks.held);
    EXPECT_EQ(engine.faults(), std::vector<std::string>{});
    engine.run_to_idle();
    engine.expect_reference(id);
  }
}

// O123. Guards: admission reckons with the window's cap, not with the whole sequence.
TEST(kv_shape, o123_the_admission_check_knows_the_window_cap) {
  const group_shape full_group{16, 0, 1}, window_group{16, 64, 1};
  const auto needed = [&](std::uint32_t num_tokens) {
    return full_group.num_blocks_at_most(num_tokens, 128) + window_group.num_blocks_at_most(num_tokens, 128);
  };
  EXPECT_EQ(window_group.num_blocks_at_most(512, 128), 13U);
  EXPECT_EQ(needed(512), 32U + 13U);
  EXPECT_LE(needed(512), 78U - 1);
  EXPECT_GT(needed(256), 5U - 1);
}

// O020. Guards: the window in chunks rounds up.
TEST(kv_shape, o020_window_chunks_round_up) {
  EXPECT_EQ((group_shape{1024, 8192, 1}.num_window_chunks()), 8U);
  EXPECT_EQ((group_shape{3000, 8192, 1}.num_window_chunks()), 3U);
}

}  // namespace
}  // namespace sluice::testing
