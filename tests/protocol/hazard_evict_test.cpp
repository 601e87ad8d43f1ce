// SPDX-License-Identifier: Apache-2.0
//
// Hazards of making room in the host tier, seen from requests. The policies alone: unit/arc_policy_test.cpp and
// unit/host_tier_model_test.cpp.
#include <tuple>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/host_tier_index.hpp>
#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

/// Eviction policy, asynchronous scheduling.
struct hazard_evict : ::testing::TestWithParam<std::tuple<eviction_policy_kind, bool>> {
  static engine_options options(std::uint32_t num_host_slots) {
    auto options = sized(4, 1, 100);
    options.num_host_slots = num_host_slots;
    const auto [kind, is_async] = GetParam();
    options.tier = std::make_unique<host_tier_index>(num_host_slots, make_eviction_policy(kind, num_host_slots));
    options.async_scheduling = is_async;
    return options;
  }

  /// Tokens of the prompt's full blocks that the host has.
  static std::uint32_t num_on_host(test_engine& engine, const std::vector<token_id>& prompt) {
    EXPECT_TRUE(engine.reset(false, false).success);
    const auto id = engine.complete_request(prompt + std::vector<token_id>{201}, 1);
    engine.expect_reference(id);
    return engine.record(id).summary->usage.num_host_cached_tokens;
  }
};

INSTANTIATE_TEST_SUITE_P(policies, hazard_evict,
                         ::testing::Combine(::testing::Values(eviction_policy_kind::lru, eviction_policy_kind::arc),
                                            ::testing::Bool()),
                         [](const auto& chosen) {
                           const bool is_lru = std::get<0>(chosen.param) == eviction_policy_kind::lru;
                           return std::string(is_lru ? "lru" : "arc") + (std::get<1>(chosen.param) ? "_async" : "_sync");
                         });

// EVICT-01. P1 was used twice and is being read, P2 was used once. Guards: a store is refused only when not enough is
// evictable, wherever that is, and then nothing is changed.
TEST_P(hazard_evict, evict_01_a_store_is_refused_only_when_too_little_is_evictable) {
  test_engine engine(options(4));
  engine.warm_host(make_prompt(8));
  EXPECT_EQ(num_on_host(engine, make_prompt(8)), 8U);
  engine.warm_host(make_prompt(8, 61));
  ASSERT_EQ(engine.snapshot().slots.ready, 4U);
  const auto reader = engine.submit(make_prompt(8) + std::vector<token_id>{202}, 2);
  engine.run();
  ASSERT_EQ(engine.snapshot().slots.pinned, 2U);
  engine.submit(make_prompt(8, 121), 1);
  engine.run();
  EXPECT_EQ(engine.totals().host_evictions, 2U);
  EXPECT_EQ(engine.totals().refused_offers, 0U);
  ASSERT_EQ(engine.snapshot().slots.pending, 2U);
  engine.submit(make_prompt(8, 181), 1);  // two are read, two are written
  engine.run();
  EXPECT_GT(engine.totals().refused_offers, 0U);
  EXPECT_EQ(engine.totals().host_evictions, 2U);
  EXPECT_EQ(engine.snapshot().slots.pending, 2U);
  EXPECT_EQ(engine.snapshot().slots.ready, 2U);
  engine.run_to_idle();
  engine.expect_reference(reader);
  EXPECT_EQ(num_on_host(engine, make_prompt(8)), 8U);
  EXPECT_EQ(num_on_host(engine, make_prompt(8, 121)), 8U);
  EXPECT_EQ(num_on_host(engine, make_prompt(8, 61)), 0U);
}

// EVICT-05. Blocks 0 and 1 of the prompt are in the tier, beside two others. Guards: making room for blocks of a
// request does not evict its own; what cannot be stored as a whole changes nothing.
TEST_P(hazard_evict, evict_05_a_store_does_not_evict_its_own_prefix) {
  for (const std::size_t num_blocks : {4, 5}) {
    test_engine engine(options(4));
    engine.complete_request(make_prompt(8), 1);  // stays on the device too
    engine.complete_request(make_prompt(8, 121), 1);
    ASSERT_EQ(engine.snapshot().slots.ready, 4U);
    const auto id = engine.complete_request(make_prompt(4 * num_blocks), 1);
    engine.expect_reference(id);
    const bool fits = num_blocks == 4;
    EXPECT_EQ(engine.totals().host_evictions, fits ? 2U : 0U);
    EXPECT_EQ(engine.totals().refused_offers > 0, !fits);
    EXPECT_EQ(num_on_host(engine, make_prompt(16)), fits ? 16U : 8U);
  }
}

// EVICT-08. Guards: a lookup that leads to no load pins nothing, however often; what was looked up is evicted as usual.
TEST_P(hazard_evict, evict_08_lookups_that_lead_to_no_load_leave_no_pins) {
  test_engine engine(options(8));
  engine.complete_request(make_prompt(12), 1);
  for (int i = 0; i < 20; ++i) {
    const auto id = engine.complete_request(make_prompt(12) + std::vector<token_id>{201}, 1);
    EXPECT_EQ(engine.record(id).summary->usage.num_device_cached_tokens, 12U);
    EXPECT_EQ(engine.snapshot().slots.pinned, 0U);
  }
  EXPECT_EQ(engine.totals().loads_ok, 0U);
  for (token_id first : {61, 121}) engine.complete_request(make_prompt(32, first), 1);
  EXPECT_EQ(engine.totals().refused_offers, 0U);
  EXPECT_EQ(num_on_host(engine, make_prompt(12)), 0U);
}

// EVICT-09: here reads hold a reference, and time alone frees nothing. Guards: slots that a load reads keep their bytes
// until its physical end, under pressure, and even after the load was given up and its chunks were dropped.
TEST_P(hazard_evict, evict_09_slots_under_a_slow_read_keep_their_bytes) {
  auto with_timeout = options(3);
  with_timeout.adjust = [](scheduler_config& config) { config.transfer_timeout = 8s; };
  test_engine engine(std::move(with_timeout));
  engine.warm_host(make_prompt(12));
  const auto reader = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 2);
  engine.run();
  const auto load = engine.loads().at(0);
  const auto source = engine.tier_bytes(load);
  const auto press = [&](token_id first) {
    engine.submit(make_prompt(12, first), 1);
    engine.run();
    EXPECT_TRUE(engine.device.outstanding_tags() == std::vector<std::uint64_t>{load.value});
    EXPECT_EQ(engine.tier_bytes(load), source);
  };
  press(61);
  EXPECT_GT(engine.totals().refused_offers, 0U);
  for (int i = 0; i < 20; ++i) {
    engine.system.advance(500ms);
    engine.run();
  }
  engine.expect_reference(reader);
  EXPECT_EQ(engine.snapshot().slots.draining, 3U);
  press(121);
  engine.complete(load);
  EXPECT_EQ(engine.snapshot().slots.draining, 0U);
  EXPECT_EQ(num_on_host(engine, make_prompt(12)), 0U);
}

}  // namespace
}  // namespace sluice::testing
