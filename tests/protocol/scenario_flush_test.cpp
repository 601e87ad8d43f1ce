// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of which stores a step boundary waits for. 'Pending-store index' of the scenarios is here: unsettled
// stores.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_flush : both_schedulings {
  static engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_blocks) {
    auto options = testing::sized(block_size, blocks_per_chunk, num_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_flush);

/// A pool of one usable block, and a request A that ended in it with its store held. The device cache is reset.
struct one_block_run {
  explicit one_block_run(test_engine& engine) {
    engine.end_at(make_prompt(4, 1), 0);
    a = engine.submit(make_prompt(4, 1), 10);
    engine.run();
    EXPECT_TRUE(engine.has_ended(a));
    EXPECT_EQ(engine.stores(), engine.traffic().stores_of(a));
    EXPECT_EQ(engine.stores().size(), 1U);
    EXPECT_EQ(engine.traffic().stored_ordinals(a), (ordinals{0}));
    EXPECT_TRUE(engine.reset(false, false).success);
  }
  request_id a;
};

// O047, F = 1; B's prompt is on the host already (A's own chunk is no hit before its store has settled). Guards: a load
// into a block that a store still reads is submitted only after that store has settled.
TEST_P(scenario_flush, o047_a_load_into_a_block_with_a_pending_store_flushes_it) {
  test_engine engine(sized(4, 1, 2));
  engine.warm_host(make_prompt(4, 101));
  const one_block_run run(engine);
  const auto store = engine.stores().at(0);
  const auto source = engine.device_bytes(store);
  const auto b = engine.submit(make_prompt(4, 101), 1);
  engine.run();
  EXPECT_EQ(engine.traffic().flushed(), std::vector<transfer_id>{store});
  ASSERT_EQ(engine.loads().size(), 1U);
  EXPECT_TRUE(engine.snapshot().is_boundary_open);
  EXPECT_TRUE(engine.device.outstanding("load").empty());  // staged only
  engine.complete(store);
  EXPECT_TRUE(engine.stores().empty());
  EXPECT_EQ(engine.tier_bytes(store), source);
  EXPECT_FALSE(engine.device.outstanding("load").empty());
  engine.complete(engine.loads().at(0));
  EXPECT_EQ(engine.traffic().loaded_ordinals(b), (ordinals{0}));
  EXPECT_TRUE(engine.stores().empty());  // the block came from the host and is there
  engine.expect_reference(run.a);
  engine.expect_reference(b);
}

// O048, F = 1. Guards: a prefill into a block that a store still reads is dispatched only after that store has settled.
TEST_P(scenario_flush, o048_a_prefill_into_a_block_with_a_pending_store_flushes_it) {
  test_engine engine(sized(4, 1, 2));
  const one_block_run run(engine);
  const auto store = engine.stores().at(0);
  const auto source = engine.device_bytes(store);
  engine.end_at(make_prompt(4, 101), 0);
  const auto b = engine.submit(make_prompt(4, 101), 10);
  engine.run();
  EXPECT_EQ(engine.traffic().flushed(), std::vector<transfer_id>{store});
  EXPECT_TRUE(engine.traffic().entries_of(b).empty());
  engine.complete(store);
  EXPECT_EQ(engine.tier_bytes(store), source);
  ASSERT_TRUE(engine.has_ended(b));
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().flushed(), std::vector<transfer_id>{store});
  EXPECT_TRUE(engine.stores().empty());
  engine.expect_reference(run.a);
  engine.expect_reference(b);
}

// O049, F = 3. An older request takes the block that is left when the victim has decoded 20 tokens: 88 blocks of its
// own and the victim's 11 are all 99. It starts a step before the victim, asynchronous two. Guards: preemption flushes
// every pending store of the victim, and only those.
TEST_P(scenario_flush, o049_preemption_flushes_every_pending_store_of_the_victim) {
  test_engine engine(sized(4, 3, 100));
  const auto older = engine.submit(make_prompt(GetParam() ? 330 : 332, 101), GetParam() ? 26 : 24);
  const auto victim = engine.submit(make_prompt(24, 1), 40);
  ASSERT_TRUE(engine.run_until_tokens(victim, 43));
  EXPECT_EQ(engine.totals().preemptions_capacity, 0U);
  EXPECT_TRUE(engine.traffic().flushed().empty());
  ASSERT_TRUE(engine.run_until_boundary());
  EXPECT_EQ(engine.totals().preemptions_capacity, 1U);
  EXPECT_EQ(engine.request(victim)->num_tokens, 44U);
  EXPECT_EQ(engine.request(victim)->phase, request_phase::waiting);
  engine.run();
  EXPECT_EQ(engine.traffic().stored_ordinals(victim), (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(engine.traffic().flushed(), engine.traffic().stores_of(victim));
  const auto steps = engine.totals().steps;
  for (auto store : engine.traffic().stores_of(victim)) {
    EXPECT_EQ(engine.totals().steps, steps);
    engine.complete(store);
  }
  EXPECT_GT(engine.totals().steps, steps);
  EXPECT_EQ(engine.totals().flushed_stores, 2U);
  engine.run_to_idle();
  engine.expect_reference(older);
  engine.expect_reference(victim);
}

// O051, F = 3. Guards: without re-use there is no flush and no boundary.
TEST_P(scenario_flush, o051_no_reuse_no_flush) {
  test_engine engine(sized(4, 3, 100));
  engine.end_at(make_prompt(36), 0);
  const auto id = engine.complete_request(make_prompt(36), 10);
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(engine.traffic().flushed().empty());
  EXPECT_EQ(engine.totals().boundaries, 0U);
  EXPECT_EQ(engine.totals().stores_ok, 1U);
  engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
