// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of loads: how many at once, how they end, and who waits for what meanwhile.
#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_load : both_schedulings {
  static engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_blocks) {
    auto options = testing::sized(block_size, blocks_per_chunk, num_blocks);
    options.async_scheduling = GetParam();
    options.num_host_slots = 512;
    options.model.bytes_per_token = 8;
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_load);

std::vector<token_id> first(std::size_t num_tokens, const std::vector<token_id>& tokens) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(num_tokens)};
}

struct failed_load_case {
  std::vector<std::uint32_t> bad_blocks;
  std::uint32_t num_left;  // tokens that need not be computed
};

// O038, block 16, F = 1. The request is matched again, with what came before the first bad block. Guards: a failed load
// costs what lies behind its first bad block, and other requests nothing.
TEST_P(scenario_load, o038_a_failed_load_keeps_what_came_before_the_first_bad_block) {
  const std::vector<failed_load_case> cases{{{0, 98}, 0}, {{50, 98}, 800}, {{98}, 1568}};
  for (const auto& [bad_blocks, num_left] : cases) {
    SCOPED_TRACE(num_left);
    test_engine engine(sized(16, 1, 400));
    std::vector<request_id> ids;
    for (token_id start : {1, 51, 101}) engine.warm_host(first(1584, make_prompt(1600, start)));
    const auto queried = engine.totals().host_query_tokens;
    for (token_id start : {1, 51, 101}) ids.push_back(engine.submit(make_prompt(1600, start), 1));
    engine.run();
    const auto loads = engine.loads();
    ASSERT_EQ(loads.size(), 3U);
    EXPECT_EQ(engine.traffic().transfer(loads[1]).blocks().size(), 99U);
    engine.complete(loads[0]);
    engine.fail(loads[1], bad_blocks.front());
    engine.complete(loads[2]);
    engine.run_to_idle();
    EXPECT_EQ(engine.traffic().entries_of(ids[0]).at(0).first_position, 1584U);
    EXPECT_EQ(engine.traffic().entries_of(ids[1]).at(0).first_position, num_left);
    EXPECT_EQ(engine.traffic().entries_of(ids[2]).at(0).first_position, 1584U);
    EXPECT_EQ(engine.traffic().loads_of(ids[1]), std::vector<transfer_id>{loads[1]});
    EXPECT_EQ(engine.totals().host_query_tokens - queried, 3U * 1600);
    EXPECT_EQ(engine.totals().loads_failed, 1U);
    for (auto id : ids) engine.expect_reference(id);
  }
}

// O042, F = 3. Guards: a load is no store: nothing waits for it in a flush, and its blocks are held.
TEST_P(scenario_load, o042_a_load_is_not_among_the_stores) {
  test_engine engine(sized(4, 3, 100));
  engine.warm_host(make_prompt(12));
  const auto id = engine.submit(make_prompt(12), 1);
  engine.run();
  EXPECT_EQ(engine.loads(), engine.traffic().loads_of(id));
  EXPECT_EQ(engine.loads().size(), 1U);
  EXPECT_TRUE(engine.stores().empty());
  EXPECT_EQ(engine.snapshot().blocks.held, 3U);
  EXPECT_EQ(engine.totals().boundaries, 0U);
  engine.run_to_idle();
  EXPECT_TRUE(engine.traffic().flushed().empty());
  engine.expect_reference(id);
}

// O044, block 16, F = 1, 24 blocks. B is in front of A, but A was admitted while B waited for a lookup. Guards: a
// preempted request at the head that finds no place, or no blocks, does not keep a loaded one from running.
TEST_P(scenario_load, o044_a_blocked_head_does_not_keep_a_loaded_request_from_running) {
  for (const std::uint32_t max_num_seqs : {1U, 8U}) {
    SCOPED_TRACE(max_num_seqs);
    auto options = sized(16, 1, 25);
    options.max_num_seqs = max_num_seqs;
    auto& tier = script_tier(options);
    test_engine engine(std::move(options));
    engine.warm_host(make_prompt(256));
    const auto b = engine.submit(make_prompt(240, 101), 10);
    ASSERT_TRUE(engine.run_until_tokens(b, 242));
    const auto key = chunk_keys(engine, make_prompt(240, 101)).at(0);
    tier.answer_lookup(key, lookup_verdict::retry);
    EXPECT_TRUE(engine.reset(true, false).success);
    engine.run();
    while (!engine.stores().empty()) engine.complete(engine.stores()[0]);
    EXPECT_EQ(engine.request(b)->reason, waiting_reason::lookup_pending);
    const auto a = engine.submit(make_prompt(256), 4);
    engine.run();
    EXPECT_EQ(engine.request(a)->phase, request_phase::loading);
    EXPECT_EQ(engine.request(a)->num_blocks, 16U);
    tier.answer_lookup(key, std::nullopt);
    compat::anon_mail(lookups_answered{}).send(engine.scheduler);
    engine.run();
    EXPECT_EQ(engine.request(b)->phase, request_phase::waiting);
    EXPECT_EQ(engine.request(b)->reason, max_num_seqs == 1 ? waiting_reason::queued : waiting_reason::no_blocks);
    EXPECT_TRUE(engine.traffic().entries_of(a).empty());
    ASSERT_EQ(engine.loads().size(), 1U);
    engine.complete(engine.loads()[0]);
    engine.expect_reference(a);
    engine.run_to_idle();
    engine.expect_reference(b);
    EXPECT_EQ(engine.record(a).summary->usage.num_preemptions, 0U);
  }
}

// O046, block 16, F = 1. Guards: loading requests count among the active ones; a loaded one is not matched again.
TEST_P(scenario_load, o046_active_requests_bound_the_loads_in_flight) {
  auto options = sized(16, 1, 100);
  options.max_num_seqs = 2;
  options.max_num_batched_tokens = 64;
  test_engine engine(std::move(options));
  std::vector<request_id> ids;
  for (token_id start : {1, 51, 101}) engine.warm_host(make_prompt(16, start));
  const auto before = engine.totals();
  const auto num_batches = engine.traffic().batches().size();
  for (token_id start : {1, 51, 101}) ids.push_back(engine.submit(make_prompt(32, start), 4));
  engine.run();
  const auto in_phase = [&](request_phase phase) {
    std::vector<request_id> found;
    for (auto id : ids)
      if (engine.request(id)->phase == phase) found.push_back(id);
    return found;
  };
  EXPECT_EQ(in_phase(request_phase::loading), (std::vector<request_id>{ids[0], ids[1]}));
  EXPECT_EQ(in_phase(request_phase::waiting), std::vector<request_id>{ids[2]});
  EXPECT_EQ(engine.totals().scheduled_tokens, before.scheduled_tokens);
  EXPECT_EQ(engine.totals().host_query_tokens - before.host_query_tokens, 2U * 32);
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 2U);
  for (auto load : loads) ASSERT_TRUE(engine.device.complete_copies(load.value));
  ASSERT_TRUE(engine.system.run_until([&] { return engine.traffic().batches().size() > num_batches; }));
  EXPECT_EQ(in_phase(request_phase::running), (std::vector<request_id>{ids[0], ids[1]}));
  EXPECT_EQ(in_phase(request_phase::waiting), std::vector<request_id>{ids[2]});
  const auto& entries = engine.traffic().batches().at(num_batches).entries;
  ASSERT_EQ(entries.size(), 2U);
  for (const auto& entry : entries) {
    EXPECT_EQ(entry.first_position, 16U);
    EXPECT_EQ(entry.tokens.size(), 16U);
  }
  EXPECT_EQ(engine.totals().host_query_tokens - before.host_query_tokens, 2U * 32);
  engine.run_to_idle();
  for (auto id : ids) engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
