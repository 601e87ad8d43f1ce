// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of several requests at once.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_run : both_schedulings {
  static engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_blocks) {
    auto options = testing::sized(block_size, blocks_per_chunk, num_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_run);

// O039, F = 3. Y joins X's load, less the block that X computes its last token in; so Y's last block of tokens is
// computed. Guards: content that is being loaded is not loaded twice.
TEST_P(scenario_run, o039_a_second_request_joins_the_load_of_the_first) {
  test_engine engine(sized(4, 3, 100));
  const auto prompt = make_prompt(12);
  engine.warm_host(prompt);
  const auto x = engine.submit(prompt, 3);
  engine.run();
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 1U);
  const auto y = engine.submit(prompt, 3);
  engine.run();
  EXPECT_EQ(engine.loads(), loads);
  EXPECT_EQ(engine.request(y)->phase, request_phase::loading);
  EXPECT_EQ(engine.request(y)->loads, loads);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(x), (ordinals{0, 1, 2}));
  EXPECT_TRUE(engine.traffic().loads_of(y).empty());
  EXPECT_EQ(engine.totals().loads_ok, 1U);
  const auto of_x = engine.traffic().entries_of(x).at(0), of_y = engine.traffic().entries_of(y).at(0);
  EXPECT_EQ(of_x.first_position, 11U);
  EXPECT_EQ(of_y.first_position, 8U);
  EXPECT_EQ(of_x.block_tables[0][0], of_y.block_tables[0][0]);
  EXPECT_EQ(of_x.block_tables[0][1], of_y.block_tables[0][1]);
  EXPECT_NE(of_x.block_tables[0][2], of_y.block_tables[0][2]);
  EXPECT_EQ(engine.record(y).summary->usage.num_host_cached_tokens, 8U);
  EXPECT_TRUE(engine.stores().empty());
  engine.expect_reference(x);
  engine.expect_reference(y);
}

// O039 with a longer second request, F = 3. Y cannot take the block that X computes its last token in, so it loads that
// third of the chunk itself. Guards: a block that is written again is shared with nobody; a load may begin in a chunk.
TEST_P(scenario_run, o039_a_longer_request_does_not_join_the_block_that_is_recomputed) {
  test_engine engine(sized(4, 3, 100));
  const auto prompt = make_prompt(12);
  engine.warm_host(prompt);
  const auto x = engine.submit(prompt, 3);
  const auto y = engine.submit(prompt + std::vector<token_id>{201}, 3);
  engine.run();
  EXPECT_EQ(engine.loads().size(), 2U);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(x), (ordinals{0, 1, 2}));
  EXPECT_EQ(engine.traffic().loaded_ordinals(y), (ordinals{2}));
  const auto of_x = engine.traffic().entries_of(x).at(0), of_y = engine.traffic().entries_of(y).at(0);
  EXPECT_EQ(of_x.block_tables[0][1], of_y.block_tables[0][1]);
  EXPECT_NE(of_x.block_tables[0][2], of_y.block_tables[0][2]);
  EXPECT_EQ(of_y.first_position, 12U);
  engine.expect_reference(x);
  engine.expect_reference(y);
}

// O053, F = 3. Guards: the client hears of the end at once and once, whatever its stores do.
TEST_P(scenario_run, o053_the_end_does_not_wait_for_transfers) {
  test_engine engine(sized(4, 3, 100));
  const auto prompt = make_prompt(24);
  engine.end_at(prompt, 24);  // 48 tokens get computed
  const auto id = engine.submit(prompt, 100);
  engine.run();
  ASSERT_TRUE(engine.has_ended(id));
  EXPECT_EQ(engine.record(id).num_terminal_events, 1U);
  EXPECT_EQ(engine.record(id).summary->reason, finish_reason::stop);
  EXPECT_FALSE(engine.request(id).has_value());
  EXPECT_EQ(engine.stores().size(), 3U);
  EXPECT_EQ(engine.totals().stores_ok, 0U);
  engine.run_to_idle();
  EXPECT_EQ(engine.totals().stores_ok, 3U);
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(engine.record(id).num_terminal_events, 1U);
  engine.expect_reference(id);
}

// O057, F = 1. Guards: a reset that preempts running requests changes no output.
TEST_P(scenario_run, o057_output_is_the_same_after_resetting_running_requests) {
  auto options = sized(4, 1, 100);
  options.max_num_batched_tokens = 32;
  test_engine engine(std::move(options));
  const std::vector<std::vector<token_id>> prompts{make_prompt(10, 1), make_prompt(7, 41), make_prompt(100, 81),
                                                   make_prompt(13, 201)};
  std::vector<request_id> first, second;
  for (const auto& prompt : prompts) first.push_back(engine.submit(prompt, 16));
  engine.run_to_idle();
  for (const auto& prompt : prompts) second.push_back(engine.submit(prompt, 16));
  for (int step = 0; step < 10; ++step) engine.run_step();
  EXPECT_TRUE(engine.reset(true, false).success);
  EXPECT_EQ(engine.totals().preemptions_reset, 4U);
  engine.run_to_idle();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(engine.record(first[i]).tokens.size(), 16U);
    EXPECT_EQ(engine.record(first[i]).tokens, engine.record(second[i]).tokens);
    EXPECT_EQ(engine.record(first[i]).text, engine.record(second[i]).text);
    EXPECT_EQ(engine.record(second[i]).summary->usage.num_preemptions, 1U);
    engine.expect_reference(first[i]);
  }
}

// O138, F = 1. Guards: nothing is left of requests that have ended.
TEST_P(scenario_run, o138_no_leaks) {
  test_engine engine(sized(4, 1, 100));
  std::vector<request_id> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(engine.submit(make_prompt(10, 1 + 40 * i), 10));
    engine.run_step();
  }
  engine.run_to_idle();
  const auto end = engine.snapshot();
  EXPECT_TRUE(end.is_idle);
  EXPECT_TRUE(end.requests.empty());
  EXPECT_TRUE(end.transfers.empty());
  EXPECT_EQ(end.blocks.held, 0U);
  EXPECT_EQ(end.blocks.free + end.blocks.cached, 99U);
  EXPECT_TRUE(engine.faults().empty());  // among them: every reference count equals the number of holders
  EXPECT_EQ(end.totals.finished_length, 5U);
  for (auto id : ids) engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
