// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of which chunks are stored, and when.
#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_store : both_schedulings {
  static engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_blocks) {
    auto options = testing::sized(block_size, blocks_per_chunk, num_blocks);
    options.async_scheduling = GetParam();
    return options;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_store);

// O023, F = 3. Guards: chunks that the device had are offered to the host all the same.
TEST_P(scenario_store, o023_chunks_from_the_device_cache_are_offered_too) {
  auto options = sized(4, 3, 100);
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  tier.accept_only({});
  auto prompt = make_prompt(72);
  const auto before = engine.complete_request(prompt, 1);
  EXPECT_TRUE(engine.traffic().stores_of(before).empty());
  prompt.back() = 201;
  engine.end_at(prompt, 1);
  const auto id = engine.complete_request(prompt, 10);
  EXPECT_EQ(engine.record(id).summary->usage.num_device_cached_tokens, 68U);
  EXPECT_EQ(engine.record(id).tokens.size(), 2U);
  EXPECT_EQ(engine.traffic().stored_ordinals(id),
            (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}));
  engine.expect_reference(id);
}

// O024, F = 3. Guards: a refused offer is made again with the next chunk, an empty acceptance is final.
TEST_P(scenario_store, o024_a_refusal_keeps_the_cursor_and_an_empty_acceptance_advances_it) {
  auto options = sized(4, 3, 100);
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  tier.accept_only({1});
  tier.refuse();
  tier.accept_only({});
  tier.accept_all();
  const auto prompt = make_prompt(36);
  engine.end_at(prompt, 38);
  const auto id = engine.submit(prompt, 100);
  ASSERT_TRUE(engine.run_until_tokens(id, 37));  // (1) 36 tokens computed
  ASSERT_EQ(tier.offers().size(), 1U);
  EXPECT_EQ(tier.offers()[0].keys.size(), 3U);
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{3, 4, 5}));
  ASSERT_TRUE(engine.run_until_tokens(id, 48));  // (2) 11 more
  EXPECT_EQ(tier.offers().size(), 1U);
  ASSERT_TRUE(engine.run_until_tokens(id, 49));  // (3) one more: chunk 3 is complete
  ASSERT_EQ(tier.offers().size(), 2U);
  EXPECT_TRUE(tier.offers()[1].is_refused);
  ASSERT_EQ(tier.offers()[1].keys.size(), 1U);
  ASSERT_TRUE(engine.run_until_tokens(id, 62));  // (4) 13 more: chunk 4 is complete
  ASSERT_EQ(tier.offers().size(), 3U);
  ASSERT_EQ(tier.offers()[2].keys.size(), 2U);
  EXPECT_EQ(tier.offers()[2].keys[0], tier.offers()[1].keys[0]);
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{3, 4, 5}));
  engine.run_to_idle();  // (5) 13 more: chunk 5 is complete; (6) the last of the tokens is the end token
  ASSERT_TRUE(engine.has_ended(id));
  EXPECT_EQ(engine.record(id).summary->reason, finish_reason::stop);
  ASSERT_EQ(tier.offers().size(), 4U);
  EXPECT_EQ(tier.offers()[3].keys.size(), 1U);
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{3, 4, 5, 15, 16, 17}));
  EXPECT_EQ(engine.totals().refused_offers, 1U);
  engine.expect_reference(id);
}

// O025, F = 1. Guards: a request that never had device blocks leaves no store and no record behind.
TEST_P(scenario_store, o025_aborting_a_queued_request_creates_no_store) {
  test_engine engine(sized(4, 1, 8));
  const auto a = engine.submit(make_prompt(16, 1), 12);
  ASSERT_TRUE(engine.run_until_tokens(a, 17));
  const auto b = engine.submit(make_prompt(16, 101), 8);
  ASSERT_TRUE(engine.system.run_until(
      [&] { return engine.request(b) && engine.request(b)->reason == waiting_reason::no_blocks; }));
  EXPECT_EQ(engine.request(b)->phase, request_phase::waiting);
  EXPECT_EQ(engine.request(b)->num_blocks, 0U);
  engine.abort(b);
  ASSERT_TRUE(engine.system.run_until([&] { return !engine.request(b).has_value(); }))
      << "A has " << engine.record(a).tokens.size() << " tokens, boundary open: " << engine.snapshot().is_boundary_open;
  EXPECT_FALSE(engine.request(b).has_value());
  EXPECT_TRUE(engine.request(a).has_value());
  engine.run_to_idle();
  EXPECT_EQ(engine.record(b).summary->reason, finish_reason::abort);
  EXPECT_TRUE(engine.traffic().stores_of(b).empty());
  EXPECT_TRUE(engine.traffic().entries_of(b).empty());
  engine.expect_reference(a);
}

// O026, F = 1. Guards: the KV of the last sampled token is never computed, so a block that only it would fill is not
// stored.
TEST_P(scenario_store, o026_does_not_store_a_block_that_only_the_final_token_fills) {
  for (std::size_t num_tokens : {7U, 6U}) {
    SCOPED_TRACE(num_tokens);
    test_engine engine(sized(4, 1, 10));
    const auto prompt = make_prompt(num_tokens);
    engine.end_at(prompt, 0);
    const auto id = engine.complete_request(prompt, 10);
    EXPECT_EQ(engine.record(id).summary->reason, finish_reason::stop);
    EXPECT_EQ(engine.record(id).tokens.size(), 1U);
    EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{0}));
    EXPECT_FALSE(engine.request(id).has_value());
    EXPECT_EQ(engine.snapshot().slots.ready, 1U);
  }
}

/// A request of 24 prompt and 20 decoded tokens, preempted by a reset, which is how the pool comes to report 0 free
/// blocks for it. It ends with its 25th output token, so that 48 tokens get computed.
struct preempted_request {
  explicit preempted_request(test_engine& engine) {
    engine.end_at(make_prompt(24), 24);
    id = engine.submit(make_prompt(24), 100);
    EXPECT_TRUE(engine.run_until_tokens(id, 43));  // its 44th token is on the way, asynchronous: its 45th too
    stores_before = engine.traffic().stores_of(id);
    EXPECT_TRUE(engine.reset(true, false).success);
    EXPECT_EQ(engine.request(id)->num_tokens, engine.options.async_scheduling ? 45U : 44U);
  }
  request_id id;
  std::vector<transfer_id> stores_before;
};

/// Of the stores after those.
ordinals stored_later(test_engine& engine, request_id id, std::size_t num_before) {
  ordinals all;
  const auto stores = engine.traffic().stores_of(id);
  for (auto i = num_before; i < stores.size(); ++i) {
    const auto some = engine.traffic().ordinals_of(stores[i]);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// O037, F = 3. Guards: what was just loaded is not stored again.
TEST_P(scenario_store, o037_stores_only_what_is_new_after_a_reload) {
  test_engine engine(sized(4, 3, 100));
  const preempted_request request(engine);
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(request.id), (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(stored_later(engine, request.id, request.stores_before.size()), (ordinals{9, 10, 11}));
  EXPECT_EQ(engine.record(request.id).tokens.size(), 25U);
  EXPECT_EQ(engine.record(request.id).summary->reason, finish_reason::stop);
  engine.expect_reference(request.id);
}

// O045, F = 3. Guards: stores that a flush completed are what the reload reads, and storing goes on behind them.
TEST_P(scenario_store, o045_reload_after_preemption_resumes_storing_behind_it) {
  test_engine engine(sized(4, 3, 100));
  const preempted_request request(engine);
  engine.run();
  EXPECT_EQ(engine.traffic().flushed(), request.stores_before);
  EXPECT_EQ(engine.traffic().stored_ordinals(request.id), (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(engine.snapshot().is_boundary_open);
  EXPECT_TRUE(engine.loads().empty());  // the request waits for its own stores
  for (auto store : request.stores_before) engine.complete(store);
  EXPECT_FALSE(engine.snapshot().is_boundary_open);
  ASSERT_EQ(engine.loads().size(), 1U);
  engine.complete(engine.loads()[0]);
  EXPECT_EQ(engine.traffic().loaded_ordinals(request.id), (ordinals{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  engine.run_to_idle();
  EXPECT_EQ(stored_later(engine, request.id, 2), (ordinals{9, 10, 11}));
  EXPECT_TRUE(engine.stores().empty());
  engine.expect_reference(request.id);
}

}  // namespace
}  // namespace sluice::testing
