// SPDX-License-Identifier: Apache-2.0
//
// REUSE-08 with two KV groups, one of which is a window: blocks that it has passed are the null block in a table.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include <support/kv_groups.hpp>

namespace sluice::testing {
namespace {

/// What the request that gets the blocks of old stores does with them.
enum class taking { computes, loads, extends_a_device_hit };

struct hazard_reuse_groups : grouped_scenario {
  static engine_options options(std::uint32_t num_device_blocks) {
    auto options = grouped({{full, 0, 4}, {window, 8, 4}}, num_device_blocks);
    options.max_num_batched_tokens = 8;  // so that the window passes blocks while the prompt is computed
    options.adjust = [](scheduler_config& config) { config.recompute_budget = 10; };
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_reuse_groups);

bool has_null(const std::vector<block_id>& blocks) {
  return std::find(blocks.begin(), blocks.end(), null_block) != blocks.end();
}

/// The bytes that old stores read, and have to find until they have settled.
struct old_stores {
  old_stores(test_engine& from, request_id owner) : engine(from) {
    for (auto id : engine.traffic().stores_of(owner)) {
      for (const std::uint16_t group : {0, 1}) EXPECT_FALSE(has_null(engine.traffic().transfer(id).blocks(group)));
      source[id] = engine.device_bytes(id);
    }
  }
  /// One after the other; each finds its bytes as they were.
  void complete() {
    for (const auto& [id, bytes] : source) {
      EXPECT_EQ(engine.device_bytes(id), bytes) << "store " << id.value;
      engine.complete(id);
    }
    expect_stored();
  }
  void expect_stored() const {
    for (const auto& [id, bytes] : source) EXPECT_EQ(engine.tier_bytes(id), bytes) << "store " << id.value;
  }

  test_engine& engine;
  std::map<transfer_id, std::vector<std::byte>> source;
};

// REUSE-08. Guards: whatever a block of whatever group is allocated for, a store that still reads it is settled before
// anything is written there; null blocks are nobody's and delay nobody.
TEST_P(hazard_reuse_groups, reuse_08_two_groups_and_null_blocks) {
  for (auto how : {taking::computes, taking::loads, taking::extends_a_device_hit}) {
    SCOPED_TRACE(static_cast<int>(how));
    test_engine engine(options(22));
    engine.warm_host(make_prompt(16, 101));
    if (how == taking::extends_a_device_hit) engine.complete_request(make_prompt(8, 101), 1);
    const auto gone = engine.submit(make_prompt(32), 1);
    engine.run();
    ASSERT_TRUE(engine.has_ended(gone));
    EXPECT_TRUE(has_null(engine.traffic().entries_of(gone).back().block_tables.at(1)));
    old_stores old(engine, gone);
    ASSERT_EQ(old.source.size(), 4U);
    const auto b =
        engine.submit(how == taking::computes ? make_prompt(20, 61) : make_prompt(16, 101) + make_prompt(6, 61), 2);
    engine.run();
    EXPECT_FALSE(engine.has_ended(b));
    old.complete();
    EXPECT_FALSE(engine.traffic().flushed().empty());
    for (auto id : engine.traffic().flushed()) EXPECT_TRUE(old.source.contains(id)) << "store " << id.value;
    engine.run_to_idle();
    old.expect_stored();
    engine.expect_reference(b);
    EXPECT_TRUE(has_null(engine.traffic().entries_of(b).back().block_tables.at(1)));
    const auto usage = engine.record(b).summary->usage;
    EXPECT_EQ(usage.num_device_cached_tokens, how == taking::extends_a_device_hit ? 8U : 0U);
    EXPECT_EQ(usage.num_host_cached_tokens, how == taking::loads ? 16U : how == taking::computes ? 0U : 8U);
  }
}

// REUSE-08. Guards: the null block, which stands in the tables of two requests, is no re-use: nothing is flushed.
TEST_P(hazard_reuse_groups, reuse_08_the_null_block_flushes_nothing) {
  test_engine engine(options(100));
  const auto gone = engine.submit(make_prompt(32), 1);
  engine.run();
  ASSERT_TRUE(engine.has_ended(gone));
  ASSERT_EQ(engine.stores().size(), 4U);
  const auto b = engine.submit(make_prompt(24, 61), 2);
  engine.run();
  for (auto id : {gone, b}) EXPECT_TRUE(has_null(engine.traffic().entries_of(id).back().block_tables.at(1)));
  EXPECT_TRUE(engine.traffic().flushed().empty());
  EXPECT_EQ(engine.totals().boundaries, 0U);
  engine.expect_reference(b);
}

}  // namespace
}  // namespace sluice::testing
