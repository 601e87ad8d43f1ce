// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of chunks of which a tier cannot say yet whether it has them. The scan alone: unit/chunk_scan_test.cpp.
#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

using enum lookup_verdict;

struct scenario_lookup : both_schedulings {
  static engine_options options(std::uint32_t blocks_per_chunk, std::uint32_t num_device_blocks) {
    auto options = sized(4, blocks_per_chunk, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
  /// Rather computes so many chunks than it waits for them.
  static engine_options with_budget(std::uint32_t num_chunks) {
    auto some = options(1, 100);
    some.adjust = [num_chunks](scheduler_config& config) { config.recompute_budget = num_chunks; };
    return some;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_lookup);

/// Chunks that are on the host, whatever the tier says of them, and a request that wants them.
struct scripted_lookups {
  scripted_lookups(test_engine& engine, scripted_tier& tier, const std::vector<lookup_verdict>& verdicts) {
    const auto prompt = make_prompt(4 * verdicts.size());
    engine.warm_host(prompt);
    keys = chunk_keys(engine, prompt);
    for (std::size_t i = 0; i < keys.size(); ++i) tier.answer_lookup(keys[i], verdicts[i]);
    tier.take_lookups();
    id = engine.submit(prompt + std::vector<token_id>{201}, 2);
    engine.run();
  }
  std::vector<chunk_key> keys;
  request_id id;
};

std::size_t num_host_events(const test_engine& engine) {
  std::size_t num_events = 0;
  for (const auto& event : engine.events) num_events += event.medium != "device";
  return num_events;
}

// O006, F = 1. Guards: who may store nothing still looks up, also behind a chunk without an answer, waits without
// asking again, and leaves nothing behind.
TEST_P(scenario_lookup, o006_a_request_that_may_store_nothing_looks_up) {
  auto with_events = options(1, 10);
  with_events.adjust = [](scheduler_config& config) { config.records_kv_events = true; };
  auto& tier = script_tier(with_events);
  test_engine engine(std::move(with_events));
  const auto prompt = make_prompt(12);
  engine.end_at(prompt, 1);
  tier.answer_lookups(retry);
  request_params params;
  params.prompt = prompt;
  params.max_tokens = 10;
  params.max_offload_tokens = 0;
  const auto id = engine.submit(params);
  engine.run();
  EXPECT_EQ(tier.take_lookups(), chunk_keys(engine, prompt));
  EXPECT_EQ(engine.request(id)->phase, request_phase::waiting);
  EXPECT_EQ(engine.request(id)->reason, waiting_reason::lookup_pending);
  EXPECT_EQ(num_host_events(engine), 0U);
  tier.answer_lookups(miss);
  engine.run();
  EXPECT_TRUE(tier.take_lookups().empty());
  compat::anon_mail(lookups_answered{}).send(engine.scheduler);
  engine.run_to_idle();
  ASSERT_TRUE(engine.has_ended(id));
  EXPECT_TRUE(tier.offers().empty());
  EXPECT_EQ(num_host_events(engine), 0U);
  engine.expect_reference(id);
}

// O009, F = 3, in both modes. The boundary is answered before the stores have settled. Guards: a preempted request with
// unsettled stores of its own is not admitted, and not even looked up.
TEST_P(scenario_lookup, o009_readmission_waits_for_its_own_stores) {
  auto held = options(3, 100);
  held.has_fake_handler = true;
  auto& tier = script_tier(held);
  test_engine engine(std::move(held));
  const auto id = engine.submit(make_prompt(24), 25);
  ASSERT_TRUE(engine.run_until_tokens(id, 43));
  const auto stores = engine.stores();
  ASSERT_EQ(stores.size(), 2U);
  EXPECT_TRUE(engine.reset(true, false).success);
  engine.run();
  const auto boundary = engine.handler_probe->take<step_boundary>();
  ASSERT_EQ(boundary.pending.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(boundary.pending[i].id, stores[i]);
  tier.answer_lookups(hit);
  tier.take_lookups();
  const auto num_batches = engine.traffic().batches().size();
  ASSERT_TRUE(engine.handler_probe->answer<step_boundary>(boundary_cleared{boundary.step, 2, 0}));
  engine.run();
  EXPECT_EQ(engine.request(id)->reason, waiting_reason::transfers_pending);
  EXPECT_EQ(engine.request(id)->num_unsettled_stores, 2U);
  EXPECT_EQ(engine.stores(), stores);
  EXPECT_TRUE(engine.loads().empty());
  EXPECT_EQ(engine.traffic().batches().size(), num_batches);
  EXPECT_TRUE(tier.take_lookups().empty());
  tier.answer_lookups(std::nullopt);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  engine.expect_reference(id);
}

struct budget_case {
  std::vector<lookup_verdict> verdicts;
  std::uint32_t budget;
  waiting_reason reason;          // none: it does not wait
  std::uint32_t num_usable;       // chunks, at once or once it has waited enough
};

// O005, O010, O011, F = 1. Guards: what is still being stored is computed in place of waited for if the run is short
// enough, and then what is ready behind it is given up; an open answer is waited for, whatever the budget; the wait
// ends.
TEST_P(scenario_lookup, o005_o010_o011_the_recompute_budget) {
  const std::vector<budget_case> cases{
      {{pending}, 1, waiting_reason::none, 0},
      {{pending}, 0, waiting_reason::chunk_pending, 0},
      {{hit, pending, hit, pending}, 3, waiting_reason::none, 1},
      {{hit, pending, hit, pending}, 2, waiting_reason::chunk_pending, 1},
      {{hit, retry}, 10, waiting_reason::lookup_pending, 1},
  };
  for (std::size_t at = 0; at < cases.size(); ++at) {
    SCOPED_TRACE(at);
    const auto& [verdicts, budget, reason, num_usable] = cases[at];
    auto some = with_budget(budget);
    auto& tier = script_tier(some);
    test_engine engine(std::move(some));
    const scripted_lookups run(engine, tier, verdicts);
    const auto lookups = tier.take_lookups();
    EXPECT_EQ(lookups, run.keys);
    if (reason != waiting_reason::none) {
      EXPECT_EQ(engine.request(run.id)->phase, request_phase::waiting);
      EXPECT_EQ(engine.request(run.id)->reason, reason);
      EXPECT_TRUE(engine.loads().empty());
      engine.system.advance(std::chrono::seconds{10});  // lookup_timeout
      engine.run();
    }
    EXPECT_EQ(engine.loads().size(), num_usable == 0 ? 0U : 1U);
    engine.run_to_idle();
    EXPECT_EQ(engine.traffic().loaded_ordinals(run.id), num_usable == 0 ? ordinals{} : ordinals{0});
    EXPECT_EQ(engine.traffic().entries_of(run.id).at(0).first_position, 4 * num_usable);
    engine.expect_reference(run.id);
  }
}

// O011 when the answer comes. Guards: it is used, without the wait running out.
TEST_P(scenario_lookup, o011_an_answer_ends_the_wait) {
  for (auto answer : {hit, miss}) {
    SCOPED_TRACE(static_cast<int>(answer));
    auto some = with_budget(10);
    auto& tier = script_tier(some);
    test_engine engine(std::move(some));
    const scripted_lookups run(engine, tier, {hit, retry});
    EXPECT_EQ(engine.request(run.id)->reason, waiting_reason::lookup_pending);
    tier.answer_lookup(run.keys[1], answer);
    compat::anon_mail(lookups_answered{}).send(engine.scheduler);
    engine.run();
    ASSERT_EQ(engine.loads().size(), 1U);
    engine.run_to_idle();
    EXPECT_EQ(engine.traffic().loaded_ordinals(run.id), answer == hit ? (ordinals{0, 1}) : ordinals{0});
    engine.expect_reference(run.id);
  }
}

}  // namespace
}  // namespace sluice::testing
