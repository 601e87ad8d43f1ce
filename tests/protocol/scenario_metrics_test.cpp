// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of what the engine measures and counts, with one host tier. Their names for metrics are others' names; ours
// are in runtime/metric_families.cpp.
#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_metrics : both_schedulings {};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_metrics);

/// Keeps what it is told.
struct recording_observer final : engine_observer {
  void step_part_took(step_part part, std::chrono::nanoseconds time) override { parts[part].push_back(time); }
  void request_was_queued(std::chrono::nanoseconds time) override { queue.push_back(time); }
  void tier_lookup_took(std::chrono::nanoseconds time) override { lookups.push_back(time); }
  void transfer_took(transfer_direction direction, std::uint64_t bytes, std::chrono::nanoseconds time) override {
    transfers[direction].push_back(bytes);
    transfer_times.push_back(time);
  }

  using times = std::vector<std::chrono::nanoseconds>;
  std::map<step_part, times> parts;
  times queue, lookups, transfer_times;
  std::map<transfer_direction, std::vector<std::uint64_t>> transfers;
};

engine_options observed(recording_observer& observer, bool is_async, std::uint32_t num_blocks = 100) {
  auto options = sized(4, 1, num_blocks);
  options.async_scheduling = is_async;
  options.observer = &observer;
  return options;
}

// O084, O088 (a) of one tier. Guards: a request that the tier must be asked about is one sample.
TEST_P(scenario_metrics, o084_a_lookup_is_timed_once) {
  recording_observer seen;
  test_engine engine(observed(seen, GetParam(), 10));
  engine.end_at(make_prompt(4), 0);
  engine.complete_request(make_prompt(4), 10);
  ASSERT_EQ(seen.lookups.size(), 1U);
  EXPECT_GT(seen.lookups[0].count(), 0);
}

// O088 (b), (c) of one tier. Guards: the time until a tier has an answer is no lookup time; asking again is a sample.
TEST_P(scenario_metrics, o088_waiting_for_an_answer_is_no_lookup_time) {
  recording_observer seen;
  auto options = observed(seen, GetParam());
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  const auto key = chunk_keys(engine, make_prompt(4)).at(0);
  tier.answer_lookup(key, lookup_verdict::retry);
  const auto id = engine.submit(make_prompt(8), 1);
  engine.run();
  EXPECT_EQ(engine.request(id)->reason, waiting_reason::lookup_pending);
  EXPECT_EQ(seen.lookups.size(), 1U);
  tier.answer_lookup(key, lookup_verdict::miss);
  compat::anon_mail(lookups_answered{}).send(engine.scheduler);
  engine.run_to_idle();
  EXPECT_EQ(seen.lookups.size(), 2U);
  EXPECT_EQ(seen.queue.size(), 1U);
  engine.expect_reference(id);
}

// O083 of one tier. Guards: a request is asked about once, however often it is considered; so is a resumed one.
TEST_P(scenario_metrics, o083_a_query_is_counted_once_per_request) {
  recording_observer seen;
  test_engine engine(observed(seen, GetParam()));
  engine.warm_host(make_prompt(8));
  const auto before = engine.totals();
  const auto id = engine.submit(make_prompt(8) + std::vector<token_id>{201}, 8);
  ASSERT_FALSE(engine.run_until_tokens(id, 11)) << "its load is held";
  ASSERT_TRUE(engine.device.complete_copies(engine.loads().at(0).value));
  ASSERT_TRUE(engine.run_until_tokens(id, 11));
  engine.reset(true, false);
  engine.run_to_idle();
  const auto after = engine.totals();
  EXPECT_EQ(engine.record(id).summary->usage.num_preemptions, 1U);
  EXPECT_EQ(after.host_query_tokens - before.host_query_tokens, 9U);
  EXPECT_EQ(after.host_hit_tokens - before.host_hit_tokens, 8U);
  EXPECT_EQ(seen.queue.size(), 2U) << "one request warmed the host, one was preempted";
}

// O085, O092 of one tier. Guards: bytes and times of what went well, failures of what did not, per direction.
TEST_P(scenario_metrics, o085_transfers_are_counted_by_direction_and_result) {
  recording_observer seen;
  test_engine engine(observed(seen, GetParam()));
  const auto block = engine.model.kv(4).bytes_per_block;
  using sizes = std::vector<std::uint64_t>;

  engine.submit(make_prompt(8), 1);
  engine.run();
  engine.fail(engine.stores().at(0), 1);  // one of two chunks is stored
  EXPECT_EQ(engine.totals().stores_failed, 1U);
  EXPECT_EQ(seen.transfers[transfer_direction::store], sizes{});
  EXPECT_EQ(engine.snapshot().slots.ready, 1U);

  engine.warm_host(make_prompt(8));
  EXPECT_EQ(engine.totals().stores_ok, 1U);
  EXPECT_EQ(engine.totals().stored_bytes, block);
  EXPECT_EQ(seen.transfers[transfer_direction::store], sizes{block});

  const auto loaded = engine.submit(make_prompt(8) + std::vector<token_id>{201}, 1);
  engine.run();
  engine.complete(engine.loads().at(0));
  EXPECT_EQ(engine.totals().loads_ok, 1U);
  EXPECT_EQ(engine.totals().loaded_bytes, 2 * block);
  EXPECT_EQ(seen.transfers[transfer_direction::load], sizes{2 * block});
  engine.run_to_idle();
  engine.expect_reference(loaded);

  engine.reset(false, false);
  const auto failing = engine.submit(make_prompt(8) + std::vector<token_id>{202}, 1);
  engine.run();
  engine.fail(engine.loads().at(0), 1);
  EXPECT_EQ(engine.totals().loads_failed, 1U);
  EXPECT_EQ(seen.transfers[transfer_direction::load], sizes{2 * block}) << "a failed one is no sample";
  engine.run_to_idle();
  engine.expect_reference(failing);
}

// O070, O086 of one tier. Guards: what a store writes and what a load reads counts as in use, and nothing else does.
TEST_P(scenario_metrics, o086_transfers_in_flight_and_the_share_of_the_tier_they_hold) {
  recording_observer seen;
  auto options = observed(seen, GetParam());
  options.num_host_slots = 6;
  test_engine engine(std::move(options));
  engine.warm_host(make_prompt(12));
  EXPECT_EQ(engine.snapshot().slots, (slot_counts{3, 0, 3, 0, 0}));
  engine.submit(make_prompt(12) + std::vector<token_id>{201}, 1);  // loads 3 chunks
  engine.submit(make_prompt(8, 101), 1);                           // stores 2
  engine.run();
  EXPECT_EQ(engine.loads().size(), 1U);
  EXPECT_EQ(engine.stores().size(), 1U);
  EXPECT_EQ(engine.snapshot().slots, (slot_counts{1, 2, 3, 0, 5}));
  engine.run_to_idle();
  EXPECT_EQ(engine.snapshot().slots.pinned, 0U);
}

// Guards: each step is measured in all its parts, and a boundary only where there was one.
TEST_P(scenario_metrics, each_part_of_each_step_is_timed) {
  recording_observer seen;
  test_engine engine(observed(seen, GetParam()));
  const auto id = engine.submit(make_prompt(10), 9);
  ASSERT_TRUE(engine.run_until_tokens(id, 14));
  engine.reset(true, false);
  engine.run_to_idle();
  engine.expect_reference(id);
  const auto totals = engine.totals();
  EXPECT_EQ(totals.boundaries, 1U);
  EXPECT_EQ(seen.parts[step_part::boundary].size(), 1U);
  EXPECT_EQ(seen.parts[step_part::plan].size(), totals.steps);
  EXPECT_EQ(seen.parts[step_part::apply].size(), totals.steps);
  EXPECT_EQ(seen.parts[step_part::commit].size(), seen.parts[step_part::execute].size());
  EXPECT_GT(seen.parts[step_part::commit].size(), 8U);
  for (const auto& [part, times] : seen.parts)
    for (const auto time : times) EXPECT_GE(time.count(), 0);
}

}  // namespace
}  // namespace sluice::testing
