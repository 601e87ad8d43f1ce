// SPDX-License-Identifier: Apache-2.0
//
// What the physical end of a transfer does to requests, pool and tier.
#include <sluice/actors/scheduler/settle_transfers.hpp>

#include <gtest/gtest.h>

#include "scheduler_fixture.hpp"

namespace sluice {
namespace {

using unit::scheduler_fixture;
using unit::tokens_from;

/// Tells how many blocks of a load are good.
transfers_settled bad_from(transfer_id load, std::uint32_t num_good) {
  return {transfer_direction::load, {{load, transfer_result::failed, num_good, {}, false}}};
}

// Guards: O043, blocks of 16 tokens, 99 of 100 loaded. A transfer has one outcome: the first report of a failure says
// from which block on the request computes, and later ones are of no transfer in flight and change nothing.
TEST(settle_transfers, o043_a_transfer_has_one_outcome) {
  for (const std::uint32_t first_bad : {0U, 50U, 98U}) {
    SCOPED_TRACE(first_bad);
    scheduler_fixture engine({.block_size = 16, .num_device_blocks = 220, .num_host_slots = 200});
    engine.compute_and_end(1, tokens_from(0, 1584));
    engine.state.pool.forget_all();
    engine.submit(2, tokens_from(0, 1600));
    const auto loads = engine.run(engine.plan());
    ASSERT_EQ(loads.size(), 1U);
    ASSERT_EQ(engine.state.ledger.find(loads[0].id)->blocks.size(), 99U);
    EXPECT_EQ(engine.request(2).phase, request_phase::loading);

    EXPECT_EQ(settle_transfers(engine.state, bad_from(loads[0].id, first_bad)), 0U);
    const auto blocks = engine.state.pool.counts();
    const auto slots = engine.state.tier->counts();
    EXPECT_EQ(blocks.cached, first_bad);
    EXPECT_EQ(slots.ready, first_bad);
    for (const std::uint32_t later : {98U, 50U, 0U})
      EXPECT_EQ(settle_transfers(engine.state, bad_from(loads[0].id, later)), 1U);
    EXPECT_EQ(engine.state.pool.counts(), blocks);
    EXPECT_EQ(engine.state.tier->counts(), slots);
    EXPECT_EQ(engine.state.totals.loads_failed, 1U);

    EXPECT_EQ(engine.request(2).phase, request_phase::waiting);
    const auto next = engine.run_step();
    ASSERT_EQ(next.admissions.size(), 1U);
    EXPECT_EQ(next.admissions[0].num_computed_tokens, 16 * first_bad);
    EXPECT_FALSE(next.admissions[0].load.has_value());
  }
}

}  // namespace
}  // namespace sluice
