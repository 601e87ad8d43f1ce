// SPDX-License-Identifier: Apache-2.0
//
// Hazards of resetting the caches while transfers are in flight.
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

struct parked_variant {
  std::size_t num_parked;
  bool reset_external;
  bool is_async;
};

engine_options options(bool is_async) {
  auto options = sized(4, 1, 100);
  options.async_scheduling = is_async;
  return options;
}

/// RESET-05: requests that are parked on their loads hold blocks and cannot be preempted.
struct hazard_reset_parked : ::testing::TestWithParam<parked_variant> {
  void park(test_engine& engine) {
    for (std::size_t i = 0; i < GetParam().num_parked; ++i)
      engine.warm_host(make_prompt(12, static_cast<token_id>(1 + 60 * i)));
    for (std::size_t i = 0; i < GetParam().num_parked; ++i)
      parked.push_back(
          engine.submit(make_prompt(12, static_cast<token_id>(1 + 60 * i)) + std::vector<token_id>{201, 202}, 8));
    engine.run();
    ASSERT_EQ(engine.loads().size(), GetParam().num_parked);
    for (auto id : parked) ASSERT_EQ(engine.request(id)->phase, request_phase::loading);
  }

  std::vector<request_id> parked;
};

// RESET-05, F = 1. Guards: a reset that meets a load is refused whole, with the loads that hold the device; nobody is
// preempted, and everybody ends with the right tokens. With `reset_external` the tier is reset all the same, and what
// was being loaded from it is stale.
TEST_P(hazard_reset_parked, reset_05_is_refused_and_preempts_nobody) {
  test_engine engine(options(GetParam().is_async));
  park(engine);
  const auto loads = engine.loads();
  const auto running = engine.submit(make_prompt(1, 221), 20);
  ASSERT_TRUE(engine.run_until_tokens(running, 3));
  const auto report = engine.reset(true, GetParam().reset_external);
  EXPECT_FALSE(report.success);
  ASSERT_EQ(report.caches.size(), GetParam().reset_external ? 2U : 1U);
  EXPECT_EQ(report.caches[0].cache, "device");
  EXPECT_FALSE(report.caches[0].reset);
  EXPECT_EQ(report.caches[0].held_by_loads, loads);
  EXPECT_EQ(report.caches[0].num_dropped, 0U);
  EXPECT_EQ(engine.totals().preemptions_reset, 0U);
  EXPECT_EQ(engine.request(running)->phase, request_phase::running);
  if (GetParam().reset_external) {
    EXPECT_TRUE(report.caches[1].reset);
    EXPECT_EQ(engine.snapshot().slots.ready, 0U);
    EXPECT_EQ(engine.snapshot().slots.draining, 3 * GetParam().num_parked);
  }
  engine.run_to_idle();
  EXPECT_EQ(engine.totals().loads_stale, GetParam().reset_external ? GetParam().num_parked : 0U);
  EXPECT_EQ(engine.totals().loads_ok, GetParam().reset_external ? 0U : GetParam().num_parked);
  for (auto id : parked) {
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, GetParam().reset_external ? 0U : 12U);
    engine.expect_reference(id);
  }
  engine.expect_reference(running);
  EXPECT_TRUE(engine.reset(true, GetParam().reset_external).success);
  EXPECT_EQ(engine.snapshot().blocks.free, 99U);
}

INSTANTIATE_TEST_SUITE_P(variants, hazard_reset_parked,
                         ::testing::Values(parked_variant{1, false, false}, parked_variant{2, false, false},
                                           parked_variant{1, true, false}, parked_variant{2, true, false},
                                           parked_variant{1, false, true}, parked_variant{2, false, true},
                                           parked_variant{1, true, true}, parked_variant{2, true, true}),
                         [](const auto& variant) {
                           return std::to_string(variant.param.num_parked) + "_parked" +
                                  (variant.param.reset_external ? "_external" : "") +
                                  (variant.param.is_async ? "_async" : "_sync");
                         });

struct hazard_reset : both_schedulings {
  test_engine engine{options(GetParam())};
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_reset);

// RESET-05, F = 1. Guards: after the tier was reset under a load, nothing that load brought in is found again.
TEST_P(hazard_reset, reset_05_what_a_stale_load_brought_in_is_not_found) {
  engine.warm_host(make_prompt(12));
  const auto gone = engine.submit(make_prompt(12) + std::vector<token_id>{201, 202}, 8);
  engine.run();
  ASSERT_EQ(engine.loads().size(), 1U);
  EXPECT_FALSE(engine.reset(false, true).success);
  engine.abort(gone);
  engine.run_to_idle();
  EXPECT_EQ(engine.totals().loads_stale, 1U);
  EXPECT_EQ(engine.snapshot().blocks.free, 99U);
  EXPECT_EQ(engine.snapshot().slots.free, 64U);
  const auto id = engine.complete_request(make_prompt(12) + std::vector<token_id>{201}, 4);
  EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position, 0U);
  engine.expect_reference(id);
}

// RESET-05, F = 1. Guards: nobody joins a load of a tier that was reset; who wants the same content computes it at
// once.
TEST_P(hazard_reset, reset_05_a_stale_load_is_not_joined) {
  engine.warm_host(make_prompt(12));
  const auto parked = engine.submit(make_prompt(12) + std::vector<token_id>{201}, 2);
  engine.run();
  EXPECT_FALSE(engine.reset(false, true).success);
  const auto id = engine.submit(make_prompt(12) + std::vector<token_id>{202}, 2);
  engine.run();
  EXPECT_EQ(engine.request(parked)->phase, request_phase::loading);
  EXPECT_TRUE(engine.has_ended(id));
  EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, 0U);
  engine.run_to_idle();
  engine.expect_reference(parked);
  engine.expect_reference(id);
}

// RESET-05, F = 1; the device refuses, the tier is reset. Guards: what was computed before the reset, or on top of it,
// does not get into the tier again.
TEST_P(hazard_reset, reset_05_nothing_older_is_stored_after_a_tier_reset) {
  const auto running = engine.submit(make_prompt(8), 12);
  ASSERT_TRUE(engine.run_until_tokens(running, 10));
  const auto report = engine.reset(false, true);
  EXPECT_FALSE(report.caches.at(0).reset);
  EXPECT_TRUE(report.caches.at(1).reset);
  const auto num_stores = engine.traffic().stores_of(running).size();
  engine.run_to_idle();
  EXPECT_EQ(engine.traffic().stores_of(running).size(), num_stores);
  const auto later = engine.complete_request(make_prompt(8) + std::vector<token_id>{201, 202, 203, 204}, 4);
  EXPECT_EQ(engine.record(later).summary->usage.num_device_cached_tokens, 8U);  // the device was not reset
  EXPECT_TRUE(engine.traffic().stores_of(later).empty());
  EXPECT_EQ(engine.snapshot().slots.free, 64U);
  engine.expect_reference(running);
  EXPECT_TRUE(engine.reset(false, false).success);
  const auto fresh = engine.complete_request(make_prompt(8), 4);
  EXPECT_EQ(engine.traffic().entries_of(fresh).at(0).first_position, 0U);
  EXPECT_FALSE(engine.traffic().stores_of(fresh).empty());
}

// RESET-05, F = 1. Guards: without the flag, the reply names running requests beside the loads, and both are untouched.
TEST_P(hazard_reset, reset_05_without_the_flag_names_every_holder) {
  engine.warm_host(make_prompt(12));
  const auto parked = engine.submit(make_prompt(12) + std::vector<token_id>{201, 202}, 8);
  engine.run();
  const auto loads = engine.loads();
  const auto running = engine.submit(make_prompt(6, 221), 20);
  ASSERT_TRUE(engine.run_until_tokens(running, 8));
  const auto report = engine.reset(false, false);
  EXPECT_FALSE(report.success);
  EXPECT_EQ(report.caches.at(0).held_by_loads, loads);
  EXPECT_EQ(report.caches.at(0).held_by_running_requests, 1U);
  EXPECT_EQ(engine.totals().preemptions_reset, 0U);
  engine.run_to_idle();
  engine.expect_reference(parked);
  engine.expect_reference(running);
}

// RESET-08, F = 1, where it says that stores refuse a reset DESIGN wins: they do not, and the reply counts them.
// Guards: a reset under held stores succeeds, drops everything on the device, and the host still gets and serves the
// prefix.
TEST_P(hazard_reset, reset_08_stores_do_not_refuse_a_reset) {
  const auto a = engine.submit(make_prompt(8), 6);
  engine.run();
  ASSERT_TRUE(engine.has_ended(a));
  const auto stores = engine.stores();
  ASSERT_EQ(stores.size(), 2U);  // {0, 1} by the prefill, {2} while decoding
  const auto report = engine.reset(false, false);
  EXPECT_TRUE(report.success);
  EXPECT_EQ(report.caches.at(0).num_stores_in_flight, 2U);
  EXPECT_EQ(report.caches.at(0).num_dropped, 3U);
  EXPECT_EQ(report.caches.at(0).num_dropped_bytes, 3 * engine.model.kv(4).bytes_per_block);
  EXPECT_EQ(engine.snapshot().blocks.free, 99U);
  EXPECT_EQ(engine.stores(), stores);
  const auto source = engine.device_bytes(stores[0]);
  engine.complete(stores[0]);
  EXPECT_EQ(engine.reset(false, false).caches.at(0).num_stores_in_flight, 1U);
  engine.complete(stores[1]);
  EXPECT_EQ(engine.reset(false, false).caches.at(0).num_stores_in_flight, 0U);
  EXPECT_EQ(engine.tier_bytes(stores[0]), source);
  const auto again = engine.complete_request(make_prompt(8) + engine.record(a).tokens, 4);
  EXPECT_EQ(engine.traffic().loaded_ordinals(again), (ordinals{0, 1, 2}));
  engine.expect_reference(again);
}

// RESET-08, F = 1. Guards: polling a reset says false while any load is in flight, and true once the last has settled.
TEST_P(hazard_reset, reset_08_loads_refuse_a_reset_until_the_last_has_settled) {
  for (token_id p : {1, 61}) engine.warm_host(make_prompt(12, p));
  std::vector<request_id> ids;
  for (token_id p : {1, 61}) ids.push_back(engine.submit(make_prompt(12, p) + std::vector<token_id>{201}, 1));
  engine.run();
  const auto loads = engine.loads();
  ASSERT_EQ(loads.size(), 2U);
  EXPECT_EQ(engine.reset(false, false).caches.at(0).held_by_loads, loads);
  engine.complete(loads[0]);
  ASSERT_TRUE(engine.has_ended(ids[0]));
  const auto report = engine.reset(false, false);
  EXPECT_FALSE(report.success);
  EXPECT_EQ(report.caches.at(0).held_by_loads, std::vector<transfer_id>{loads[1]});
  engine.complete(loads[1]);
  ASSERT_TRUE(engine.has_ended(ids[1]));
  EXPECT_TRUE(engine.reset(false, false).success);
  EXPECT_EQ(engine.snapshot().blocks.free, 99U);
  EXPECT_EQ(engine.totals().resets_device_refused, 2U);
  const auto again = engine.complete_request(make_prompt(12) + std::vector<token_id>{201}, 1);
  EXPECT_EQ(engine.traffic().loaded_ordinals(again), (ordinals{0, 1, 2}));
}

}  // namespace
}  // namespace sluice::testing
