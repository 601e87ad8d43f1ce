// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of whose turn it is, with how many tokens, and what is counted.
#include <algorithm>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_schedule : both_schedulings {
  static engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_blocks) {
    auto options = testing::sized(block_size, blocks_per_chunk, num_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
  static engine_options ordered(scheduling_policy order, std::uint32_t num_device_blocks) {
    auto options = sized(4, 1, num_device_blocks);
    options.adjust = [order](scheduler_config& config) { config.order = order; };
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_schedule);

std::vector<token_id> first(std::size_t num_tokens, const std::vector<token_id>& tokens) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(num_tokens)};
}

request_id submit(test_engine& engine, std::vector<token_id> prompt, std::uint32_t max_tokens, std::int32_t priority) {
  request_params params;
  params.prompt = std::move(prompt);
  params.max_tokens = max_tokens;
  params.priority = priority;
  return engine.submit(params);
}

// O087. (a) in blocks of 4 and with a cold device: without a prefix cache nothing is queried here. Guards: what each
// cache was asked for and what it gave is counted, once per request.
TEST_P(scenario_schedule, o087_a_hits_of_the_host_are_counted) {
  test_engine engine(sized(4, 1, 100));
  for (token_id start : {1, 101}) engine.warm_host(make_prompt(4, start));
  const auto before = engine.totals();
  for (token_id start : {1, 101}) engine.submit(make_prompt(8, start), 1);
  engine.run_to_idle();
  const auto after = engine.totals();
  EXPECT_EQ(after.device_query_tokens - before.device_query_tokens, 16U);
  EXPECT_EQ(after.device_hit_tokens - before.device_hit_tokens, 0U);
  EXPECT_EQ(after.host_query_tokens - before.host_query_tokens, 16U);
  EXPECT_EQ(after.host_hit_tokens - before.host_hit_tokens, 8U);
  EXPECT_EQ(after.finished_length - before.finished_length, 2U);
  EXPECT_EQ(after.preemptions_capacity + after.preemptions_reset, 0U);
}

// O087 (b), block 16. Guards: the host is asked only for what the device does not have.
TEST_P(scenario_schedule, o087_b_hits_of_both_caches_are_counted) {
  test_engine engine(sized(16, 1, 100));
  const auto prompt = make_prompt(128);
  engine.warm_host(first(96, prompt));
  engine.complete_request(first(64, prompt), 1);
  const auto before = engine.totals();
  const auto id = engine.complete_request(prompt, 1);
  const auto after = engine.totals();
  EXPECT_EQ(after.device_query_tokens - before.device_query_tokens, 128U);
  EXPECT_EQ(after.device_hit_tokens - before.device_hit_tokens, 64U);
  EXPECT_EQ(after.host_query_tokens - before.host_query_tokens, 64U);
  EXPECT_EQ(after.host_hit_tokens - before.host_hit_tokens, 32U);
  EXPECT_EQ(after.scheduled_tokens - before.scheduled_tokens, 32U);
  engine.expect_reference(id);
}

// O139, F = 1; the source is the host, so the first request loads before it runs. Guards: who does not fit waits with
// nothing, and gets everything afterwards.
TEST_P(scenario_schedule, o139_not_enough_blocks_for_the_second_request) {
  test_engine engine(sized(4, 1, 10));
  for (token_id start : {1, 101}) engine.warm_host(make_prompt(8, start));
  const auto a = engine.submit(make_prompt(24, 1), 1);
  const auto b = engine.submit(make_prompt(24, 101), 1);
  engine.run();
  EXPECT_EQ(engine.request(a)->phase, request_phase::loading);
  EXPECT_EQ(engine.request(b)->phase, request_phase::waiting);
  EXPECT_EQ(engine.request(b)->reason, waiting_reason::no_blocks);
  EXPECT_EQ(engine.request(b)->num_blocks, 0U);
  ASSERT_EQ(engine.loads().size(), 1U);
  engine.complete(engine.loads()[0]);
  ASSERT_TRUE(engine.has_ended(a));
  EXPECT_TRUE(engine.traffic().entries_of(b).empty());
  engine.run_to_idle();
  for (auto id : {a, b}) {
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, 8U);
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).tokens.size(), 16U);
    EXPECT_EQ(engine.record(id).summary->usage.num_preemptions, 0U);
    engine.expect_reference(id);
  }
  const auto blocks = engine.snapshot().blocks;
  EXPECT_EQ(blocks.free + blocks.cached, 9U);
}

// Guards: waiting requests are admitted by priority, lower first, then by arrival; without the policy by arrival alone.
TEST_P(scenario_schedule, priorities_order_the_queue) {
  for (auto order : {scheduling_policy::priority, scheduling_policy::fcfs}) {
    SCOPED_TRACE(static_cast<int>(order));
    auto options = ordered(order, 100);
    options.max_num_seqs = 1;
    test_engine engine(std::move(options));
    std::vector<request_id> ids{submit(engine, make_prompt(5, 1), 6, 9)};
    ASSERT_TRUE(engine.run_until_tokens(ids[0], 7));
    const std::vector<std::int32_t> priorities{5, -1, 3, -1};
    for (std::size_t i = 0; i < priorities.size(); ++i)
      ids.push_back(submit(engine, make_prompt(5, static_cast<token_id>(31 + 30 * i)), 3, priorities[i]));
    engine.run_to_idle();
    std::vector<request_id> started;
    for (const auto& batch : engine.traffic().batches())
      for (const auto& entry : batch.entries)
        if (entry.first_position == 0) started.push_back(entry.request);
    const auto expected = order == scheduling_policy::priority
                              ? std::vector<request_id>{ids[0], ids[2], ids[4], ids[3], ids[1]}
                              : ids;
    EXPECT_EQ(started, expected);
    for (auto id : ids) engine.expect_reference(id);
  }
}

// F = 1: two requests outgrow the pool together. Guards: the victim is the last by the policy: by priority even if it
// is the older one, of equals the younger; and the counters say why.
TEST_P(scenario_schedule, priorities_choose_the_victim) {
  struct victim_case {
    scheduling_policy order;
    std::int32_t older, younger;  // priorities
    bool is_older_victim;
  };
  for (const auto& [order, of_older, of_younger, is_older_victim] :
       {victim_case{scheduling_policy::priority, 10, 0, true}, victim_case{scheduling_policy::priority, 0, 10, false},
        victim_case{scheduling_policy::priority, 5, 5, false}, victim_case{scheduling_policy::fcfs, 10, 0, false}}) {
    SCOPED_TRACE(::testing::Message() << static_cast<int>(order) << " " << of_older << " " << of_younger);
    test_engine engine(ordered(order, 8));
    const auto older = submit(engine, make_prompt(8, 1), 12, of_older);
    const auto younger = submit(engine, make_prompt(8, 101), 12, of_younger);
    engine.run_to_idle();
    const auto preemptions = [&](request_id id) { return engine.record(id).summary->usage.num_preemptions; };
    EXPECT_GE(preemptions(is_older_victim ? older : younger), 1U);
    EXPECT_EQ(preemptions(is_older_victim ? younger : older), 0U);
    const bool is_by_priority = order == scheduling_policy::priority && of_older != of_younger;
    EXPECT_EQ(engine.totals().preemptions_priority > 0, is_by_priority);
    EXPECT_EQ(engine.totals().preemptions_capacity > 0, !is_by_priority);
    engine.expect_reference(older);
    engine.expect_reference(younger);
  }
}

// Guards: a request of higher priority is admitted before one that was preempted; a preempted one before new ones of
// its own priority.
TEST_P(scenario_schedule, preempted_requests_go_first_within_their_priority) {
  auto options = ordered(scheduling_policy::priority, 100);
  options.max_num_seqs = 1;
  options.num_host_slots = 0;
  test_engine engine(std::move(options));
  const auto running = submit(engine, make_prompt(5, 1), 20, 5);
  ASSERT_TRUE(engine.run_until_tokens(running, 7));
  const auto equal = submit(engine, make_prompt(5, 61), 3, 5);
  const auto higher = submit(engine, make_prompt(5, 121), 3, 1);
  ASSERT_TRUE(engine.system.run_until([&] { return engine.request(equal) && engine.request(higher); }));
  ASSERT_EQ(engine.request(running)->phase, request_phase::running);
  EXPECT_TRUE(engine.reset(true, false).success);
  engine.run_to_idle();
  std::vector<request_id> started;
  for (const auto& batch : engine.traffic().batches())
    for (const auto& entry : batch.entries)
      if (entry.first_position == 0) started.push_back(entry.request);
  EXPECT_EQ(started, (std::vector<request_id>{running, higher, running, equal}));
  for (auto id : {running, equal, higher}) engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
