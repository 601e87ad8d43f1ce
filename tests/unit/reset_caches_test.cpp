// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/reset_caches.hpp>

#include <support/scripted_tier.hpp>

#include "scheduler_fixture.hpp"

namespace sluice {
namespace {

using verdict = tier_reset_outcome::verdict;
using unit::tokens_from;

/// A scheduler with two blocks of one request cached on the device, its two chunks ready in a scripted tier, and one
/// more store in flight.
struct reset_caches_with_tier : ::testing::TestWithParam<verdict> {
  reset_caches_with_tier() {
    auto owned = std::make_unique<testing::scripted_tier>(8);
    tier = owned.get();
    scheduler.state.tier = std::move(owned);
    scheduler.compute_and_end(1, tokens_from(1, 8));
    scheduler.compute_and_end(2, tokens_from(1001, 4), false);
  }

  reset_report reset() { return reset_caches(scheduler.state, {true, true, false}); }

  unit::scheduler_fixture scheduler;
  testing::scripted_tier* tier = nullptr;
};

INSTANTIATE_TEST_SUITE_P(verdicts, reset_caches_with_tier, ::testing::Values(verdict::refused, verdict::unsupported),
                         [](const auto& answer) {
                           return answer.param == verdict::refused ? "refused" : "unsupported";
                         });

// Guards: hazard RESET-06 (1), a tier that was not reset is no success, keeps its epoch, and no transfer becomes stale.
TEST_P(reset_caches_with_tier, reset_06_what_is_not_reset_is_no_success) {
  const auto epoch = scheduler.state.epoch;
  tier->answer_resets(GetParam());
  const auto report = reset();
  EXPECT_FALSE(report.success);
  ASSERT_EQ(report.caches.size(), 2U);
  EXPECT_EQ(report.caches[1].cache, "host");
  EXPECT_FALSE(report.caches[1].reset);
  EXPECT_EQ(report.caches[1].num_dropped, 0U);
  EXPECT_EQ(report.caches[1].num_dropped_bytes, 0U);
  EXPECT_EQ(scheduler.state.epoch, epoch);
  EXPECT_EQ(scheduler.state.tier->counts(), (slot_counts{5, 1, 2, 0, 1}));
  EXPECT_EQ(scheduler.state.totals.resets_all_refused, 1U);
  scheduler.settle_stores();
  EXPECT_EQ(scheduler.state.totals.stores_ok, 2U);
  EXPECT_EQ(scheduler.state.totals.stores_stale, 0U);
  EXPECT_EQ(scheduler.state.tier->counts(), (slot_counts{5, 0, 3, 0, 0}));
}

// Guards: hazard RESET-11, the other caches are reset although one is not, and a later reset catches up.
TEST_P(reset_caches_with_tier, reset_11_the_device_is_reset_although_the_tier_is_not) {
  tier->answer_resets(GetParam());
  const auto report = reset();
  EXPECT_TRUE(report.caches[0].reset);
  EXPECT_EQ(report.caches[0].num_dropped, 3U);
  EXPECT_EQ(scheduler.state.pool.counts().cached, 0U);
  tier->answer_resets(verdict::reset);
  const auto later = reset();
  EXPECT_TRUE(later.success);
  EXPECT_EQ(later.caches[1].num_dropped, 3U);
  EXPECT_EQ(scheduler.state.epoch, epoch_id{2});
  scheduler.settle_stores();
  EXPECT_EQ(scheduler.state.totals.stores_stale, 1U);
  EXPECT_EQ(scheduler.state.tier->counts(), (slot_counts{8, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace sluice
