// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of models with several KV groups: block sizes that differ, sliding windows. What they do with the pool:
// scenario_group_blocks_test.cpp.
#include <map>
#include <unordered_set>

#include <gtest/gtest.h>

#include <support/kv_groups.hpp>
#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_group : grouped_scenario {};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_group);

// O018. Guards: groups with different block sizes are used up to the length that all of them have.
TEST_P(scenario_group, o018_the_combined_hit_is_the_common_length) {
  test_engine engine(grouped({{full, 0, 12}, {full, 0, 16}}));
  const auto tokens = make_prompt(96);
  engine.warm_host(tokens);
  const auto first = engine.complete_request(first_tokens(tokens, 48), 1);
  EXPECT_EQ(engine.traffic().loaded_ordinals(first, 0), (ordinals{0, 1, 2, 3}));
  EXPECT_EQ(engine.traffic().loaded_ordinals(first, 1), (ordinals{0, 1, 2}));
  const auto second = engine.complete_request(first_tokens(tokens, 85), 1);
  EXPECT_EQ(engine.traffic().loaded_ordinals(second, 0), (ordinals{4, 5, 6}));
  EXPECT_EQ(engine.traffic().loaded_ordinals(second, 1), (ordinals{3, 4}));
  EXPECT_EQ(engine.traffic().entries_of(second).at(0).first_position, 80U);
  EXPECT_EQ(engine.record(second).summary->usage.num_device_cached_tokens, 48U);
  EXPECT_EQ(engine.record(second).summary->usage.num_host_cached_tokens, 32U);
  engine.expect_reference(first);
  engine.expect_reference(second);
}

// O019. Guards: a pending suffix of a window that nothing can use does not delay a prefix that is ready.
TEST_P(scenario_group, o019_an_unusable_pending_suffix_delays_nothing) {
  auto options = grouped({{full, 0, 4}, {window, 8, 4}}, 32);
  options.num_host_slots = 16;
  auto& tier = script_tier(options);
  test_engine engine(std::move(options));
  const auto prompt = make_prompt(17);
  engine.warm_host(first_tokens(prompt, 16));
  const auto keys = chunk_keys(engine, prompt, 1);
  tier.answer_lookup(keys.at(2), lookup_verdict::miss);
  tier.answer_lookup(keys.at(3), lookup_verdict::pending);
  const auto id = engine.submit(prompt, 2);
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  const auto& load = engine.traffic().transfer(engine.loads()[0]);
  EXPECT_EQ(load.blocks(0).size(), 2U);
  EXPECT_EQ(load.blocks(1).size(), 2U);
  engine.complete(engine.loads()[0]);
  const auto entry = engine.traffic().entries_of(id).at(0);
  EXPECT_EQ(entry.first_position, 8U);
  EXPECT_EQ(entry.tokens.size(), 9U);
  engine.run_to_idle();
  engine.expect_reference(id);
}

// O021. Guards: each group stores at its own boundaries.
TEST_P(scenario_group, o021_groups_store_at_their_own_boundaries) {
  test_engine engine(grouped({{full, 0, 12}, {full, 0, 16}}));
  const auto prompt = make_prompt(25);
  engine.end_at(prompt, 71);
  const auto id = engine.submit(prompt, 100);
  const auto expect_stored = [&](const ordinals& in_0, const ordinals& in_1) {
    EXPECT_EQ(engine.traffic().stored_ordinals(id, 0), in_0);
    EXPECT_EQ(engine.traffic().stored_ordinals(id, 1), in_1);
  };
  ASSERT_TRUE(engine.run_until_tokens(id, 26));  // 25 computed
  expect_stored({0, 1}, {0});
  ASSERT_TRUE(engine.run_until_tokens(id, 32));
  expect_stored({0, 1}, {0});
  ASSERT_TRUE(engine.run_until_tokens(id, 33));
  expect_stored({0, 1}, {0, 1});
  ASSERT_TRUE(engine.run_until_tokens(id, 37));
  expect_stored({0, 1, 2}, {0, 1});
  ASSERT_TRUE(engine.run_until_tokens(id, 49));
  expect_stored({0, 1, 2, 3}, {0, 1, 2});
  engine.run_to_idle();
  expect_stored({0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5});
  engine.expect_reference(id);
}

// O027, O029. Guards: a retention interval thins what a window stores and keeps the tail of the last boundary at which
// the prompt can be served again.
TEST_P(scenario_group, o027_o029_the_retention_interval_thins_window_stores) {
  const std::map<std::uint32_t, ordinals> cases{{32, {6, 7, 10, 11, 14, 15}}, {0, {10, 11}}};
  for (const auto& [interval, expected] : cases) {
    SCOPED_TRACE(interval);
    auto options = grouped({{full, 0, 16}, {window, 8, 4}}, 200);
    options.adjust = [interval = interval](scheduler_config& config) { config.retention_interval = interval; };
    test_engine engine(std::move(options));
    const auto prompt = make_prompt(64);
    engine.end_at(prompt, 1);
    const auto id = engine.complete_request(prompt, 10);
    EXPECT_EQ(engine.traffic().stored_ordinals(id, 0), (ordinals{0, 1, 2, 3}));
    EXPECT_EQ(engine.traffic().stored_ordinals(id, 1), expected);
    engine.expect_reference(id);
  }
}

// O028. Guards: decoding does not turn a running segment into a final one.
TEST_P(scenario_group, o028_decoding_ends_no_segment) {
  test_engine engine(grouped({{full, 0, 36}, {window, 16, 4}}, 700));
  const auto id = engine.submit(make_prompt(1200), 100);
  ASSERT_TRUE(engine.run_until_tokens(id, 1213));
  const auto stored = engine.traffic().stored_ordinals(id, 1);
  EXPECT_FALSE(stored.empty());
  EXPECT_LT(stored.back(), 300U);
  engine.abort(id);
  engine.run_to_idle();
}

// O050, as DESIGN has it: the store of both groups is one transfer, and re-use of any of its blocks flushes it.
TEST_P(scenario_group, o050_reuse_of_a_window_block_flushes_its_store) {
  auto options = grouped({{full, 0, 4}, {window, 8, 4}}, 4);
  options.adjust = [](scheduler_config& config) { config.recompute_budget = 10; };  // nobody waits for the held store
  test_engine engine(std::move(options));
  const auto prompt = make_prompt(4);
  const auto a = engine.submit(prompt, 1);
  engine.run();
  ASSERT_TRUE(engine.has_ended(a));
  ASSERT_EQ(engine.stores().size(), 1U);
  const auto store = engine.stores()[0];
  EXPECT_EQ(engine.traffic().ordinals_of(store, 0), (ordinals{0}));
  EXPECT_EQ(engine.traffic().ordinals_of(store, 1), (ordinals{0}));
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto b = engine.submit(prompt, 1);
  engine.run();
  EXPECT_EQ(engine.traffic().flushed(), std::vector<transfer_id>{store});
  engine.run_to_idle();
  EXPECT_TRUE(engine.stores().empty());
  engine.expect_reference(a);
  engine.expect_reference(b);
}

/// What the producer of O031 finds.
enum class warmth { cold, device, host };

// O031. Guards: who offers its whole request offers everything that somebody who has nothing asks for.
TEST_P(scenario_group, o031_whole_requests_offer_what_a_cold_consumer_asks_for) {
  const auto prompt = make_prompt(32);
  for (const bool has_window : {false, true})
    for (auto found : {warmth::cold, warmth::device, warmth::host}) {
      SCOPED_TRACE(::testing::Message() << "window " << has_window << ", warmth " << static_cast<int>(found));
      std::vector<kv_group_spec> groups{{full, 0, 16}};
      if (has_window) groups.push_back({window, 8, 4});
      auto options = grouped(groups);
      options.adjust = [](scheduler_config& config) { config.storing = store_policy::whole_request; };
      auto& tier = script_tier(options);
      test_engine engine(std::move(options));
      if (found != warmth::cold) engine.complete_request(prompt, 1);
      if (found == warmth::host) {
        EXPECT_TRUE(engine.reset(false, false).success);
      }
      const auto num_before = tier.offers().size();
      const auto producer = engine.complete_request(prompt, 1);
      if (found == warmth::host) {
        EXPECT_EQ(engine.traffic().loads_of(producer).size(), 1U);
      }
      std::unordered_set<chunk_key> offered;
      for (auto at = num_before; at < tier.offers().size(); ++at)
        offered.insert(tier.offers()[at].keys.begin(), tier.offers()[at].keys.end());
      EXPECT_TRUE(engine.reset(false, false).success);
      tier.answer_lookups(lookup_verdict::pending);
      tier.take_lookups();
      const auto consumer = engine.submit(prompt, 1);
      engine.run();
      EXPECT_EQ(engine.request(consumer)->reason, waiting_reason::chunk_pending);
      const auto asked = tier.take_lookups();
      EXPECT_FALSE(asked.empty());
      for (const auto& key : asked) EXPECT_TRUE(offered.contains(key)) << "of group " << key.group.value;
      tier.answer_lookups(std::nullopt);
      engine.abort(consumer);
      engine.run();
    }
}

// O143, without the draft. Guards: of a window only what the next token reads is loaded.
TEST_P(scenario_group, o143_a_window_loads_its_last_blocks_only) {
  test_engine engine(grouped({{full, 0, 4}, {window, 8, 4}}));
  const auto prompt = make_prompt(12);
  engine.end_at(prompt, 14);
  const auto first = engine.complete_request(prompt, 100);
  for (std::uint16_t group : {0, 1})
    EXPECT_EQ(engine.traffic().stored_ordinals(first, group), (ordinals{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto second = engine.complete_request(prompt + std::vector<token_id>{engine.reference(first).front()}, 3);
  EXPECT_EQ(engine.traffic().loaded_ordinals(second, 0), (ordinals{0, 1, 2}));
  EXPECT_EQ(engine.traffic().loaded_ordinals(second, 1), (ordinals{1, 2}));
  engine.expect_reference(second);
}

}  // namespace
}  // namespace sluice::testing
