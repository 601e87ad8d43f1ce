// SPDX-License-Identifier: Apache-2.0
//
// Hazards of giving a block away while something still reads or writes it.
#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using gpu::manual::operation_kind;

struct hazard_reuse : both_schedulings {
  static engine_options options(std::uint32_t num_device_blocks) {
    auto options = sized(4, 1, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_reuse);

/// Steps of the compute stream, one operation at a time, until the request has so many tokens.
void compute_until(test_engine& engine, request_id id, std::uint32_t num_tokens) {
  engine.run();
  while (engine.request(id) && engine.request(id)->num_tokens < num_tokens) {
    ASSERT_TRUE(engine.device.step("compute"));
    engine.run();
  }
}

bool uses_any(const batch_entry& entry, const std::vector<block_id>& blocks) {
  return std::any_of(blocks.begin(), blocks.end(), [&](block_id block) {
    const auto& table = entry.block_tables.at(0);
    return std::find(table.begin(), table.end(), block) != table.end();
  });
}

// REUSE-01 with device blocks and slots, which have types of their own here: five prompts take turns in a pool that holds
// one of them, and in a host tier that holds two, so that what is loaded lies elsewhere than it was stored from; chunks
// are whole, or begin alike. Guards: whatever is copied or computed is inside its memory, and never in the null block.
TEST_P(hazard_reuse, reuse_01_positions_stay_inside_their_memory) {
  auto small = options(8);
  small.blocks_per_chunk = 2;
  small.num_host_slots = 5;
  test_engine engine(std::move(small));
  const std::vector<token_id> prompts[] = {make_prompt(21), make_prompt(21, 41), make_prompt(13) + make_prompt(8, 81),
                                           make_prompt(18, 121), make_prompt(21, 161)};
  std::size_t num_loads = 0, num_moved = 0;
  for (const auto at : {0, 1, 0, 2, 1, 3, 2, 4, 4, 0, 3, 3, 1, 1, 2, 0}) {
    const auto id = engine.complete_request(prompts[at], 3);
    engine.expect_reference(id);
    engine.reset(false, false);
    for (const auto transfer : engine.traffic().loads_of(id)) {
      ++num_loads;
      num_moved += std::ranges::all_of(engine.traffic().transfer(transfer).copies, [](const block_copy& copy) {
        return copy.block.value != copy.slot.value * 2 + copy.first_block_in_chunk;
      });
    }
    auto transfers = engine.traffic().stores_of(id);
    std::ranges::copy(engine.traffic().loads_of(id), std::back_inserter(transfers));
    for (const auto transfer : transfers)
      for (const auto& copy : engine.traffic().transfer(transfer).copies) {
        EXPECT_GT(copy.block.value, 0U);
        EXPECT_LE(copy.block.value + copy.num_blocks, 8U);
        EXPECT_LT(copy.slot.value, 5U);
        EXPECT_LE(copy.first_block_in_chunk + copy.num_blocks, 2U);
      }
    for (const auto& entry : engine.traffic().entries_of(id))
      for (const auto block : entry.block_tables.at(0)) {
        EXPECT_GT(block.value, 0U);
        EXPECT_LT(block.value, 8U);
      }
  }
  EXPECT_GT(num_loads, 4U);
  EXPECT_GT(num_moved, 2U);
}

// REUSE-02. A takes the blocks of B, which is aborted while a step of its may still run. Guards: a load waits, on the
// device, for the last step that may read or write its targets, and writes nothing before.
TEST_P(hazard_reuse, reuse_02_a_load_waits_for_steps_that_use_its_targets) {
  auto held = options(5);
  held.holds_compute = true;
  test_engine engine(std::move(held));
  engine.warm_host(make_prompt(12));
  request_params unstored;
  unstored.prompt = make_prompt(11, 101);
  unstored.max_tokens = 5;  // all four blocks in the end
  unstored.max_offload_tokens = 0;
  const auto b = engine.submit(unstored);
  compute_until(engine, b, 13);
  engine.abort(b);
  const auto a = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 2);
  engine.run();
  while (engine.loads().empty()) {
    ASSERT_TRUE(engine.device.step("compute"));
    engine.run();
  }
  const auto load = engine.loads()[0];
  const auto before = engine.device_bytes(load);
  step_id last_user;
  for (const auto& batch : engine.traffic().batches())
    for (const auto& entry : batch.entries)
      if (entry.request == b && uses_any(entry, engine.traffic().transfer(load).blocks())) last_user = batch.step;
  ASSERT_GT(last_user.value, 0U);
  const auto queue = engine.device.outstanding("load");
  const auto copies = std::find_if(queue.begin(), queue.end(), [](auto& op) { return op.kind == operation_kind::copies; });
  ASSERT_NE(copies, queue.end());
  EXPECT_TRUE(std::any_of(queue.begin(), copies, [&](auto& op) {
    return op.kind == operation_kind::wait && op.tag >= last_user.value;
  })) << "waits for no step from " << last_user.value << " on";
  const bool is_step_running = !engine.device.outstanding("compute").empty();
  EXPECT_EQ(is_step_running, GetParam());
  if (is_step_running) {
    EXPECT_FALSE(engine.device.complete_copies(load.value));
    EXPECT_EQ(engine.device_bytes(load), before);
  }
  engine.run_to_idle();
  engine.expect_reference(a);
  EXPECT_EQ(engine.traffic().loaded_ordinals(a), (ordinals{0, 1, 2}));
}

// REUSE-04. Guards: a step that runs late, with the next one planned and queued behind it, runs with its own batch: its
// own block tables, and the tokens of the step before it.
TEST_P(hazard_reuse, reuse_04_a_step_that_runs_late_runs_with_its_own_batch) {
  auto held = options(60);
  held.holds_compute = true;
  held.max_num_seqs = 2;
  held.num_host_slots = 0;
  test_engine engine(std::move(held));
  std::vector<request_id> ids;
  for (token_id i = 0; i < 8; ++i)  // two at a time, of different lengths: they take each other's places
    ids.push_back(engine.submit(make_prompt(3 + static_cast<std::size_t>(5 * i % 7), 1 + 30 * i), 2 + 3 * i % 5));
  std::size_t most_queued = 0;
  for (engine.run(); !engine.device.outstanding("compute").empty(); engine.run()) {
    const auto queue = engine.device.outstanding("compute");
    most_queued = std::max<std::size_t>(
        most_queued, std::count_if(queue.begin(), queue.end(), [](auto& op) { return op.kind == operation_kind::function; }));
    ASSERT_TRUE(engine.device.step("compute"));
  }
  EXPECT_EQ(most_queued, GetParam() ? 2U : 1U);
  for (auto id : ids) engine.expect_reference(id);
  EXPECT_GT(engine.model.num_verified_positions(), 0U);
}

/// Why A gives its blocks up while steps with it are in flight.
enum class ending { abort, stop_token, preemption };

// REUSE-06. B needs A's blocks. Guards: what dispatched steps still write to blocks of a request that ended, or was
// preempted, does not harm whoever gets them.
TEST_P(hazard_reuse, reuse_06_blocks_of_an_ended_request_under_dispatched_steps) {
  for (auto how : {ending::abort, ending::stop_token, ending::preemption}) {
    SCOPED_TRACE(static_cast<int>(how));
    auto held = options(5);
    held.holds_compute = true;
    held.num_host_slots = 0;
    test_engine engine(std::move(held));
    if (how == ending::stop_token) engine.end_at(make_prompt(10), 2);
    const auto a = engine.submit(make_prompt(10), 6);
    compute_until(engine, a, 12);
    if (how == ending::abort) engine.abort(a);
    if (how == ending::preemption) engine.post_reset(true, false);
    const auto b = engine.submit(make_prompt(15, 101), 2);
    engine.run_to_idle();
    engine.expect_reference(b);
    if (how != ending::abort) engine.expect_reference(a);
    EXPECT_EQ(engine.record(a).summary->reason, how == ending::abort        ? finish_reason::abort
                                                : how == ending::stop_token ? finish_reason::stop
                                                                            : finish_reason::length);
  }
}

/// What the request that gets the blocks of an old store does with them.
enum class taking { computes, loads, extends_a_device_hit };

// REUSE-08, one tier and one KV group. Guards: whatever a block is allocated for, a store that still reads it is
// settled before anything is written there.
TEST_P(hazard_reuse, reuse_08_every_allocation_is_checked_against_stores) {
  for (auto how : {taking::computes, taking::loads, taking::extends_a_device_hit}) {
    SCOPED_TRACE(static_cast<int>(how));
    test_engine engine(options(7));
    engine.warm_host(make_prompt(16, 101));
    if (how == taking::extends_a_device_hit) engine.complete_request(make_prompt(8, 101), 1);
    const auto gone = engine.submit(make_prompt(16), 1);
    engine.run();
    ASSERT_TRUE(engine.has_ended(gone));
    const auto store = engine.stores().at(0);
    const auto source = engine.device_bytes(store);
    const auto b = engine.submit(how == taking::computes ? make_prompt(20, 61) : make_prompt(16, 101) + make_prompt(6, 61), 2);
    engine.run();
    EXPECT_EQ(engine.device_bytes(store), source);
    EXPECT_TRUE(engine.traffic().entries_of(b).empty());
    EXPECT_TRUE(engine.device.outstanding("load").empty());
    EXPECT_EQ(engine.traffic().flushed(), std::vector<transfer_id>{store});
    engine.complete(store);
    EXPECT_EQ(engine.tier_bytes(store), source);
    engine.run_to_idle();
    EXPECT_EQ(engine.tier_bytes(store), source);
    engine.expect_reference(b);
    const auto usage = engine.record(b).summary->usage;
    EXPECT_EQ(usage.num_device_cached_tokens, how == taking::extends_a_device_hit ? 8U : 0U);
    EXPECT_EQ(usage.num_host_cached_tokens, how == taking::loads ? 16U : how == taking::computes ? 0U : 8U);
  }
}

}  // namespace
}  // namespace sluice::testing
