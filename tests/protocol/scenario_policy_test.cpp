// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of what requests and operators choose: what may be read, loaded and stored.
#include <optional>

#include <gtest/gtest.h>

#include <support/scripted_engine.hpp>

namespace sluice::testing {
namespace {

struct scenario_policy : both_schedulings {
  static engine_options options(std::uint32_t blocks_per_chunk, std::uint32_t num_device_blocks = 100) {
    auto options = sized(4, blocks_per_chunk, num_device_blocks);
    options.async_scheduling = GetParam();
    return options;
  }

  static request_params request(std::vector<token_id> prompt, std::uint32_t max_tokens) {
    request_params params;
    params.prompt = std::move(prompt);
    params.max_tokens = max_tokens;
    return params;
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(scenario_policy);

// O032, F = 3. What the host has already is not copied again, so it is offered only. Guards: a request that must not
// read caches looks nothing up, uses nothing, and stores all the same.
TEST_P(scenario_policy, o032_a_request_that_reads_no_cache_writes_it) {
  for (const bool is_on_host : {true, false}) {
    SCOPED_TRACE(is_on_host);
    auto some = options(3);
    auto& tier = script_tier(some);
    test_engine engine(std::move(some));
    const auto prompt = make_prompt(12);
    if (!is_on_host) tier.accept_only({});
    engine.complete_request(prompt, 1);  // the device has it in both cases
    engine.end_at(prompt, 0);
    auto params = request(prompt, 10);
    params.reads_prefix_cache = false;
    tier.take_lookups();
    const auto id = engine.submit(params);
    engine.run_to_idle();
    EXPECT_TRUE(tier.take_lookups().empty());
    EXPECT_TRUE(engine.traffic().loads_of(id).empty());
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).tokens.size(), 12U);
    EXPECT_EQ(tier.offers().back().keys, chunk_keys(engine, prompt));
    EXPECT_EQ(engine.traffic().stored_ordinals(id), is_on_host ? ordinals{} : (ordinals{0, 1, 2}));
    engine.expect_reference(id);
  }
}

// O034 of requests, F = 1. Guards: a chunk is stored from its second sighting on, and what was not sighted for long
// begins anew.
TEST_P(scenario_policy, o034_only_what_is_wanted_twice_is_stored) {
  auto some = options(1);
  some.num_host_slots = 4;
  some.adjust = [](scheduler_config& config) {
    config.store_threshold = 2;
    config.num_tracked_sightings = 3;
  };
  test_engine engine(std::move(some));
  const auto stored_by = [&](const std::vector<token_id>& prompt) {
    const auto id = engine.complete_request(prompt, 1);
    EXPECT_TRUE(engine.reset(false, false).success);
    engine.expect_reference(id);
    return engine.traffic().stored_ordinals(id);
  };
  const std::vector<token_id> other{201};
  EXPECT_EQ(stored_by(make_prompt(8)), ordinals{});                  // chunks 1 and 2
  EXPECT_EQ(stored_by(make_prompt(4) + other), ordinals{0});         // chunk 1 again
  EXPECT_EQ(stored_by(make_prompt(4, 101) + other), ordinals{});     // chunk 3
  EXPECT_EQ(stored_by(make_prompt(4, 121) + other), ordinals{});     // chunk 4: 2 is forgotten
  EXPECT_EQ(stored_by(make_prompt(8)), ordinals{});
  EXPECT_EQ(engine.snapshot().slots.ready, 1U);
}

// O035, F = 3, as DESIGN has it: the loaded prefix is offered, and what the host has is not copied again. Guards: which
// chunks of a request are offered follows the policy.
TEST_P(scenario_policy, o035_a_whole_request_offers_what_it_loaded) {
  for (auto storing : {store_policy::whole_request, store_policy::incremental}) {
    SCOPED_TRACE(static_cast<int>(storing));
    auto some = options(3);
    some.adjust = [storing](scheduler_config& config) { config.storing = storing; };
    auto& tier = script_tier(some);
    test_engine engine(std::move(some));
    const auto prompt = make_prompt(24);
    engine.warm_host(make_prompt(12));
    engine.end_at(prompt, 1);
    const auto id = engine.complete_request(prompt, 10);
    EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{0, 1, 2}));
    auto keys = chunk_keys(engine, prompt);
    if (storing == store_policy::incremental) keys.erase(keys.begin());
    EXPECT_EQ(tier.offers().back().keys, keys);
    EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{3, 4, 5}));
    EXPECT_TRUE(engine.stores().empty());
    engine.expect_reference(id);
  }
}

struct load_cap_case {
  std::uint32_t num_prompt_tokens, num_on_device, max_load_tokens, num_loaded;
  std::size_t num_lookups;
};

// O036 (b) and (c), F = 4, without hits inside chunks. Guards: the cap counts tokens beyond the device's, in whole chunks; who may load nothing
// asks for nothing.
TEST_P(scenario_policy, o036_the_load_cap_counts_tokens_beyond_the_device) {
  const std::vector<load_cap_case> cases{{30, 0, 20, 16, 1},  {36, 0, 20, 16, 1}, {36, 0, no_token_limit, 32, 2},
                                         {36, 0, 15, 0, 0},   {30, 16, 0, 0, 0},  {52, 16, 16, 16, 1},
                                         {52, 16, 31, 16, 1}, {52, 16, 32, 32, 2}};
  for (std::size_t at = 0; at < cases.size(); ++at) {
    SCOPED_TRACE(at);
    const auto& [num_prompt_tokens, num_on_device, max_load_tokens, num_loaded, num_lookups] = cases[at];
    auto some = options(4);
    some.adjust = [](scheduler_config& config) { config.match_chunk_beginnings = false; };
    auto& tier = script_tier(some);
    test_engine engine(std::move(some));
    engine.warm_host(make_prompt(52));
    if (num_on_device > 0) engine.complete_request(make_prompt(num_on_device), 1);
    auto params = request(make_prompt(num_prompt_tokens), 2);
    params.max_load_tokens = max_load_tokens;
    tier.take_lookups();
    const auto id = engine.submit(params);
    engine.run();
    EXPECT_EQ(tier.take_lookups().size(), num_lookups);
    engine.run_to_idle();
    EXPECT_EQ(engine.traffic().loads_of(id).size(), num_loaded == 0 ? 0U : 1U);
    EXPECT_EQ(engine.record(id).summary->usage.num_device_cached_tokens, num_on_device);
    EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, num_loaded);
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, num_on_device + num_loaded);
    engine.expect_reference(id);
  }
}

struct store_cap_case {
  std::uint32_t max_offload_tokens;
  bool prompt_only;
  std::uint32_t num_stored;  // blocks
};

// F = 3: 20 tokens of prompt, 35 computed. Guards: chunks are stored that lie wholly in the leading tokens that may be,
// and with prompt-only offloading wholly in the prompt.
TEST_P(scenario_policy, leading_tokens_that_may_be_stored) {
  for (const auto& [max_offload_tokens, prompt_only, num_stored] :
       std::vector<store_cap_case>{{no_token_limit, false, 6}, {0, false, 0}, {11, false, 0}, {12, false, 3},
                                   {23, false, 3}, {24, false, 6}, {no_token_limit, true, 3}, {11, true, 0}}) {
    SCOPED_TRACE(max_offload_tokens);
    auto some = options(3);
    some.adjust = [only = prompt_only](scheduler_config& config) { config.offload_prompt_only = only; };
    test_engine engine(std::move(some));
    auto params = request(make_prompt(20), 16);
    params.max_offload_tokens = max_offload_tokens;
    const auto id = engine.submit(params);
    engine.run_to_idle();
    ordinals expected;
    for (std::uint32_t ordinal = 0; ordinal < num_stored; ++ordinal) expected.push_back(ordinal);
    EXPECT_EQ(engine.traffic().stored_ordinals(id), expected);
    EXPECT_EQ(engine.snapshot().slots.ready, num_stored / 3);
    engine.expect_reference(id);
  }
}

// F = 3. Guards: prompt-only offloading makes no exception but for victims, who resume with what they had decoded.
TEST_P(scenario_policy, a_victim_stores_decoded_chunks_with_prompt_only_too) {
  auto some = options(3);
  some.adjust = [](scheduler_config& config) { config.offload_prompt_only = true; };
  test_engine engine(std::move(some));
  const auto id = engine.submit(make_prompt(12), 20);
  ASSERT_TRUE(engine.run_until_tokens(id, 26));
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{0, 1, 2}));
  EXPECT_TRUE(engine.reset(true, false).success);
  engine.run();
  EXPECT_EQ(engine.traffic().stored_ordinals(id), (ordinals{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(engine.traffic().flushed(), engine.traffic().stores_of(id));
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().loaded_ordinals(id), (ordinals{0, 1, 2, 3, 4, 5}));
  engine.expect_reference(id);
}

enum class victim_tier { accepts, declines, absent };

struct victim_case {
  bool offloads;
  victim_tier tier;
};

// O137, block 16, F = 1; only victims are stored, so that every offer is one of a victim. Guards: with and without
// saving the victim first, whether the tier takes it or not, a preemption is the same preemption.
TEST_P(scenario_policy, o137_preempting_by_offload_ends_like_preempting) {
  for (const bool offloads : {false, true})
    for (auto kind : {victim_tier::accepts, victim_tier::declines, victim_tier::absent}) {
      SCOPED_TRACE(::testing::Message() << "offload " << offloads << ", tier " << static_cast<int>(kind));
      auto some = options(1);
      some.block_size = 16;
      some.max_num_batched_tokens = 16;
      if (kind == victim_tier::absent) some.num_host_slots = 0;
      some.adjust = [offloads](scheduler_config& config) {
        config.preemption_offload = offloads;
        config.offload = offload_scope::preempted;
      };
      auto* tier = kind == victim_tier::absent ? nullptr : &script_tier(some);
      if (kind == victim_tier::declines) tier->refuse();
      test_engine engine(std::move(some));
      const auto id = engine.submit(make_prompt(32), 4);
      ASSERT_TRUE(engine.system.run_until([&] { return !engine.traffic().batches().empty(); }));
      EXPECT_TRUE(engine.reset(true, false).success);  // when 16 tokens have been computed
      const auto preempted = *engine.request(id);
      EXPECT_EQ(preempted.attempt.value, 2U);
      EXPECT_EQ(preempted.num_computed_tokens, 0U);
      const bool is_asked = offloads && tier != nullptr;
      EXPECT_EQ(tier == nullptr ? 0U : tier->offers().size(), is_asked ? 1U : 0U);
      const bool is_stored = is_asked && kind == victim_tier::accepts;
      if (is_stored) {  // else it is admitted again at once
        EXPECT_EQ(preempted.phase, request_phase::waiting);
      }
      engine.run_to_idle();
      EXPECT_EQ(engine.traffic().stored_ordinals(id), is_stored ? ordinals{0} : ordinals{});
      EXPECT_EQ(engine.traffic().loaded_ordinals(id), is_stored ? ordinals{0} : ordinals{});
      EXPECT_EQ(engine.record(id).summary->usage.num_preemptions, 1U);
      EXPECT_EQ(engine.totals().preemptions_reset, 1U);
      engine.expect_reference(id);
    }
}

// O091, F = 1; an offer is made once per commit here, so it is counted once where the scenario counts two. Guards:
// refused offers are counted.
TEST_P(scenario_policy, o091_refused_offers_are_counted) {
  auto some = options(1, 10);
  auto& tier = script_tier(some);
  tier.refuse();
  test_engine engine(std::move(some));
  engine.end_at(make_prompt(4), 0);
  const auto id = engine.complete_request(make_prompt(4), 10);
  EXPECT_EQ(tier.offers().size(), 1U);
  EXPECT_EQ(engine.totals().refused_offers, 1U);
  EXPECT_TRUE(engine.traffic().stores_of(id).empty());
  engine.expect_reference(id);
}

}  // namespace
}  // namespace sluice::testing
