// SPDX-License-Identifier: Apache-2.0
//
// Hazards of requests that keep each other from running, without loads or with them.
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

/// Every attempt up to the last has computed something: nobody is preempted twice without a token in between.
void expect_progress_between_preemptions(test_engine& engine, request_id id) {
  std::set<std::uint32_t> attempts;
  for (const auto& entry : engine.traffic().entries_of(id)) attempts.insert(entry.attempt.value);
  EXPECT_EQ(attempts.size(), engine.record(id).summary->usage.num_preemptions + 1) << "request " << id.value;
}

/// Token phase of R, whether there is a host tier, asynchronous scheduling.
struct hazard_live_phases : ::testing::TestWithParam<std::tuple<std::uint32_t, bool, bool>> {
  static std::uint32_t phase() { return std::get<0>(GetParam()); }
  static engine_options options() {
    auto options = sized(16, 1, 101);
    options.max_num_batched_tokens = 321;  // R's token, and a chunk of 320
    options.num_host_slots = std::get<1>(GetParam()) ? 256 : 0;
    options.async_scheduling = std::get<2>(GetParam());
    options.model.bytes_per_token = 8;  // long sequences, read in every step
    return options;
  }

  static void finish(test_engine& engine, std::initializer_list<request_id> ids) {
    engine.run_to_idle();
    for (auto id : ids) {
      engine.expect_reference(id);
      expect_progress_between_preemptions(engine, id);
    }
  }
};

// LIVE-90: R decodes in its 60th block when A comes with 80 blocks' worth of prompt. Guards: both finish; A does not
// take what R needs, and R does not wait for what A has.
TEST_P(hazard_live_phases, live_90_a_decoding_request_and_a_large_prompt) {
  test_engine engine(options());
  const auto r = engine.submit(make_prompt(944 + phase(), 101), 40);
  ASSERT_TRUE(engine.run_until_tokens(r, 945 + phase()));
  const auto a = engine.submit(make_prompt(1280), 4);
  finish(engine, {r, a});
}

// LIVE-90 with the ages turned round: A is in the middle of its prompt when R comes. Guards: as above.
TEST_P(hazard_live_phases, live_90_a_large_prompt_and_a_younger_request) {
  test_engine engine(options());
  const auto a = engine.submit(make_prompt(1280), 4);
  engine.run_step();
  const auto r = engine.submit(make_prompt(944 + phase(), 101), 40);
  finish(engine, {r, a});
}

// LIVE-90 where admission cannot foresee the need: both are admitted with 40 blocks each and grow to 60 and 80.
// Guards: of two requests that each fit alone one always makes progress, and a preempted head blocks nobody.
TEST_P(hazard_live_phases, live_90_two_requests_that_outgrow_the_pool) {
  for (const bool is_large_first : {false, true}) {
    test_engine engine(options());
    const auto submit_r = [&] { return engine.submit(make_prompt(640 - phase(), 101), 320); };
    const auto submit_a = [&] { return engine.submit(make_prompt(640), 640); };
    const auto first = is_large_first ? submit_a() : submit_r();
    engine.run_step();
    const auto second = is_large_first ? submit_r() : submit_a();
    finish(engine, {first, second});
    EXPECT_GT(engine.totals().preemptions_capacity, 0U);
    EXPECT_EQ(engine.record(first).summary->usage.num_preemptions, 0U);  // the oldest always gets blocks
  }
}

INSTANTIATE_TEST_SUITE_P(phases, hazard_live_phases,
                         ::testing::Combine(::testing::Range(1U, 17U), ::testing::Bool(), ::testing::Bool()),
                         [](const auto& chosen) {
                           return std::to_string(std::get<0>(chosen.param)) +
                                  (std::get<1>(chosen.param) ? "_host" : "_device_only") +
                                  (std::get<2>(chosen.param) ? "_async" : "_sync");
                         });

struct hazard_live : both_schedulings {
  static engine_options options(std::uint32_t num_device_blocks) {
    auto options = sized(4, 1, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_live);

/// 50 identical prompts behind one held load.
void share_one_load(test_engine& engine, std::size_t num_prompt_tokens, bool aborts_leader) {
  engine.warm_host(make_prompt(12));
  std::vector<request_id> ids;
  for (int i = 0; i < 50; ++i) ids.push_back(engine.submit(make_prompt(num_prompt_tokens), 4));
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  const auto load = engine.loads()[0];
  for (auto id : ids) ASSERT_EQ(engine.request(id)->loads, std::vector<transfer_id>{load});
  EXPECT_EQ(engine.snapshot().blocks.held, 3U);  // the same targets for all
  if (aborts_leader) {
    engine.abort(ids.front());
    engine.run();
    EXPECT_EQ(engine.record(ids.front()).summary->reason, finish_reason::abort);
    EXPECT_EQ(engine.snapshot().transfers.at(0).num_waiters, 49U);
    ids.erase(ids.begin());
  }
  const auto steps = engine.totals().steps;
  ASSERT_TRUE(engine.device.complete_copies(load.value));
  ASSERT_TRUE(engine.run_until_tokens(ids.back(), static_cast<std::uint32_t>(num_prompt_tokens + 1)));
  EXPECT_LE(engine.totals().steps, steps + 3);
  for (auto id : ids) EXPECT_EQ(engine.request(id)->num_tokens, num_prompt_tokens + 1);
  engine.run_to_idle();
  for (auto id : ids) engine.expect_reference(id);
  EXPECT_EQ(engine.totals().loads_ok, 1U);
  EXPECT_EQ(engine.totals().preemptions_capacity, 0U);
}

// LIVE-01, with a rest to compute and as a full hit. Guards: identical prompts share one load and wait for it together.
TEST_P(hazard_live, live_01_identical_prompts_share_one_load) {
  for (const std::size_t num_prompt_tokens : {14, 12}) {
    test_engine engine(options(250));
    share_one_load(engine, num_prompt_tokens, false);
  }
}

// LIVE-01. Guards: the abort of the request that the load was created for strands none of those that joined it.
TEST_P(hazard_live, live_01_abort_of_the_leader_strands_nobody) {
  for (const std::size_t num_prompt_tokens : {14, 12}) {
    test_engine engine(options(250));
    share_one_load(engine, num_prompt_tokens, true);
  }
}

request_id submit_with_priority(test_engine& engine, std::vector<token_id> prompt, std::uint32_t max_tokens,
                                std::int32_t priority) {
  request_params params;
  params.prompt = std::move(prompt);
  params.max_tokens = max_tokens;
  params.priority = priority;
  return engine.submit(std::move(params));
}

/// A and B load all they have and need one block more each; the pool has the loads' blocks and no other. Copies of one
/// stream end in order, so B's load ends first where A, of higher priority, came later.
void load_side_by_side(bool is_async, std::uint32_t num_a, std::uint32_t num_b, bool is_a_first) {
  SCOPED_TRACE(std::to_string(num_a) + " and " + std::to_string(num_b) + " blocks, " + (is_a_first ? "A" : "B") +
               " first");
  auto options = sized(4, 1, num_a + num_b + 1);
  options.async_scheduling = is_async;
  options.adjust = [](scheduler_config& config) { config.order = scheduling_policy::priority; };
  test_engine engine(std::move(options));
  engine.warm_host(make_prompt(4 * num_a));
  engine.warm_host(make_prompt(4 * num_b, 101));
  const auto submit_b = [&] { return submit_with_priority(engine, make_prompt(4 * num_b, 101), 4, 5); };
  const auto early_b = is_a_first ? request_id{} : submit_b();
  const auto a = submit_with_priority(engine, make_prompt(4 * num_a), 4, 0);
  const auto b = is_a_first ? submit_b() : early_b;
  engine.run();
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 2U);
  for (auto load : loads) engine.complete(load);
  engine.run_to_idle();
  engine.expect_reference(a);
  engine.expect_reference(b);
  EXPECT_EQ(engine.record(a).summary->usage.num_preemptions, 0U);
  expect_progress_between_preemptions(engine, a);
}

// LIVE-02, sizes 4 and 3 and all others up to 5. Guards: two loads that fill the pool end in any order, and both
// requests still get the block that they need beyond what they loaded.
TEST_P(hazard_live, live_02_loads_that_leave_no_block_for_the_next_token) {
  for (std::uint32_t num_a = 1; num_a <= 5; ++num_a)
    for (std::uint32_t num_b = 1; num_b <= 5; ++num_b)
      for (const bool is_a_first : {true, false}) load_side_by_side(GetParam(), num_a, num_b, is_a_first);
}

/// A request whose two blocks lie on the host.
request_id park(test_engine& engine, token_id first, std::int32_t priority) {
  return submit_with_priority(engine, make_prompt(8, first) + std::vector<token_id>{201}, 3, priority);
}

// LIVE-03, fcfs: P1 and P2 come after H, which does not fit beside what X loads. Guards: loads that have ended are
// acted on whatever waits before them.
TEST_P(hazard_live, live_03_ended_loads_are_promoted_past_a_head_that_does_not_fit) {
  test_engine engine(options(13));
  for (token_id first : {1, 61, 121}) engine.warm_host(make_prompt(8, first));
  const auto x = park(engine, 121, 0);
  const auto h = engine.submit(make_prompt(43, 161), 2);  // 11 of 12 blocks
  const auto p1 = park(engine, 1, 0), p2 = park(engine, 61, 0);
  engine.run();
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 3U);
  ASSERT_EQ(engine.request(h)->reason, waiting_reason::no_blocks);
  engine.complete(loads[1]);
  EXPECT_TRUE(engine.has_ended(x));
  EXPECT_TRUE(engine.has_ended(p1));
  EXPECT_EQ(engine.request(p2)->phase, request_phase::loading);
  EXPECT_EQ(engine.request(h)->phase, request_phase::waiting);
  ASSERT_TRUE(engine.device.complete_copies(loads[2].value));
  ASSERT_TRUE(engine.system.run_until([&] { return engine.has_ended(p2); }));
  EXPECT_FALSE(engine.has_ended(h));
  engine.run_to_idle();
  for (auto id : {x, h, p1, p2}) engine.expect_reference(id);
}

// LIVE-03, priority: H goes before P1 and P2 and comes while their loads are held. Guards: as above.
TEST_P(hazard_live, live_03_ended_loads_are_promoted_past_a_head_of_higher_priority) {
  auto with_priority = options(13);
  with_priority.adjust = [](scheduler_config& config) { config.order = scheduling_policy::priority; };
  test_engine engine(std::move(with_priority));
  for (token_id first : {1, 61}) engine.warm_host(make_prompt(8, first));
  const auto p1 = park(engine, 1, 5), p2 = park(engine, 61, 5);
  engine.run();
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 2U);
  const auto h = submit_with_priority(engine, make_prompt(43, 161), 2, 0);
  engine.run();
  ASSERT_EQ(engine.request(h)->reason, waiting_reason::no_blocks);
  engine.complete(loads[0]);
  EXPECT_TRUE(engine.has_ended(p1));
  EXPECT_EQ(engine.request(p2)->phase, request_phase::loading);
  EXPECT_EQ(engine.request(h)->phase, request_phase::waiting);
  engine.complete(loads[1]);
  engine.run_to_idle();
  for (auto id : {h, p1, p2}) engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
