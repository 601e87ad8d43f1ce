// SPDX-License-Identifier: Apache-2.0
//
// Hazards of transfers and answers that never come: everything that waits is bounded in time.
#include <gtest/gtest.h>

#include <support/scripted_tier.hpp>
#include <support/test_engine.hpp>

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

struct hazard_timeout : both_schedulings {
  static constexpr auto transfer_timeout = 8s;
  static constexpr auto lookup_timeout = 3s;

  static engine_options options(std::uint32_t num_device_blocks = 100) {
    auto options = sized(4, 1, num_device_blocks);
    options.async_scheduling = GetParam();
    options.adjust = [](scheduler_config& config) {
      config.transfer_timeout = transfer_timeout;
      config.lookup_timeout = lookup_timeout;
    };
    return options;
  }

  /// No copy ends meanwhile.
  static void wait(test_engine& engine, std::chrono::milliseconds duration) {
    for (auto step = 500ms; duration > 0ms; duration -= step) {
      engine.system.advance(step);
      engine.run();
    }
  }
};
SLUICE_IN_BOTH_SCHEDULINGS(hazard_timeout);

struct held_load {
  explicit held_load(test_engine& engine) {
    engine.warm_host(make_prompt(12));
    for (token_id last : {201, 202}) ids.push_back(engine.submit(make_prompt(12) + std::vector<token_id>{last}, 3));
    engine.run();
    load = engine.loads().at(0);
  }
  std::vector<request_id> ids;  ///< the second one has joined
  transfer_id load;
};

// ABORT-05, with one rank. Guards: a load that never ends is given up in time, for whom it was created and for who
// joined it: both recompute, its blocks and its chunks stay out of reach, and its late end is absorbed.
TEST_P(hazard_timeout, abort_05_a_load_that_never_ends_is_given_up) {
  test_engine engine(options());
  const held_load run(engine);
  ASSERT_EQ(engine.loads().size(), 1U);
  wait(engine, transfer_timeout - 1s);
  for (auto id : run.ids) EXPECT_EQ(engine.request(id)->phase, request_phase::loading);
  wait(engine, 3s);
  for (auto id : run.ids) {
    engine.expect_reference(id);
    EXPECT_EQ(engine.traffic().entries_of(id).at(0).first_position % 12, 0U);
  }
  EXPECT_EQ(engine.traffic().entries_of(run.ids[0]).at(0).first_position, 0U);
  auto now = engine.snapshot();
  EXPECT_EQ(now.blocks.quarantined, 3U);
  EXPECT_EQ(now.slots.draining, 3U);
  EXPECT_EQ(engine.loads(), std::vector<transfer_id>{run.load});
  EXPECT_TRUE(now.transfers.at(0).is_given_up);
  EXPECT_EQ(engine.faults(), std::vector<std::string>{});
  engine.complete(run.load);
  now = engine.snapshot();
  EXPECT_EQ(now.blocks.quarantined, 0U);
  EXPECT_EQ(now.slots.draining, 0U);
  EXPECT_EQ(now.totals.loads_timed_out, 1U);
  EXPECT_EQ(now.totals.loads_ok, 0U);
}

// ABORT-05. Guards: the same when the load ends in failure, and when its waiters were aborted before the time.
TEST_P(hazard_timeout, abort_05_a_late_failure_is_absorbed_too) {
  test_engine engine(options());
  const held_load run(engine);
  engine.abort(run.ids[0]);
  engine.run();
  wait(engine, transfer_timeout + 2s);
  engine.expect_reference(run.ids[1]);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 3U);
  engine.fail(run.load, 1);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 0U);
  EXPECT_EQ(engine.totals().loads_timed_out, 1U);
  EXPECT_EQ(engine.totals().loads_failed, 0U);
}

// ABORT-05, section 6. Guards: beside quarantined blocks a request that does not fit ends with an error instead of
// waiting for ever; one that fits is served.
TEST_P(hazard_timeout, abort_05_what_cannot_fit_beside_quarantined_blocks_ends_with_an_error) {
  test_engine engine(options(9));
  engine.warm_host(make_prompt(16));
  const auto gone = engine.submit(make_prompt(16) + std::vector<token_id>{201}, 2);
  engine.run();
  const auto load = engine.loads().at(0);
  engine.abort(gone);
  wait(engine, transfer_timeout + 2s);
  ASSERT_EQ(engine.snapshot().blocks.quarantined, 4U);
  const auto large = engine.submit(make_prompt(20, 101), 2), small = engine.submit(make_prompt(12, 101), 2);
  engine.run();
  ASSERT_TRUE(engine.has_ended(large));
  EXPECT_EQ(engine.record(large).summary->reason, finish_reason::error);
  engine.expect_reference(small);
  engine.complete(load);
}

// Section 5. Guards: a request that was preempted under a pause, and whose store never ends, may be admitted again once
// the store was given up; until its physical end the store's blocks are given to nobody.
TEST_P(hazard_timeout, a_store_that_never_ends_does_not_hold_its_request) {
  test_engine engine(options());
  const auto a = engine.submit(make_prompt(8), 12);
  ASSERT_TRUE(engine.run_until_tokens(a, 10));
  EXPECT_EQ(engine.carry_out(pause_engine{pause_mode::keep, true, false, 60s}).outcome, control_outcome::done);
  engine.run();
  ASSERT_FALSE(engine.stores().empty());
  const auto stores = engine.stores();
  const auto source = engine.device_bytes(stores[0]);
  wait(engine, transfer_timeout + 2s);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 2U);
  EXPECT_EQ(engine.request(a)->num_unsettled_stores, 0U);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  engine.run();
  engine.expect_reference(a);
  EXPECT_TRUE(engine.traffic().flushed().empty());
  EXPECT_EQ(engine.device_bytes(stores[0]), source);
  for (auto store : stores) engine.complete(store);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 0U);
  EXPECT_EQ(engine.totals().stores_timed_out, stores.size());
}

// Sections 4 and 5. Guards: a boundary does not wait for ever for a store that never ends; its request recomputes, and
// nobody gets the blocks that the store reads.
TEST_P(hazard_timeout, a_flush_that_never_ends_gives_its_stores_up) {
  test_engine engine(options());
  const auto a = engine.submit(make_prompt(8), 12);
  ASSERT_TRUE(engine.run_until_tokens(a, 10));
  EXPECT_TRUE(engine.reset(true, false).success);
  engine.run();
  ASSERT_TRUE(engine.snapshot().is_boundary_open);
  const auto stores = engine.stores();
  wait(engine, 12s);  // the handler's flush_timeout is 10 s
  engine.expect_reference(a);
  EXPECT_EQ(engine.totals().withdrawn_plans, 1U);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 2U);
  EXPECT_TRUE(engine.traffic().loads_of(a).empty());
  for (auto store : stores)
    if (!engine.stores().empty() && engine.stores().front() <= store) engine.complete(store);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 0U);
}

// Section 5. Guards: who waits for a chunk that is still being stored waits no longer than the lookup timeout, then
// computes it; meanwhile the snapshot says why.
TEST_P(hazard_timeout, waiting_for_a_pending_chunk_is_bounded) {
  test_engine engine(options());
  engine.submit(make_prompt(8), 1);
  engine.run();
  ASSERT_TRUE(engine.reset(false, false).success);
  const auto b = engine.submit(make_prompt(8) + std::vector<token_id>{201}, 3);
  engine.run();
  wait(engine, lookup_timeout - 500ms);
  ASSERT_FALSE(engine.has_ended(b));
  EXPECT_EQ(engine.request(b)->reason, waiting_reason::chunk_pending);
  wait(engine, 1s);
  engine.expect_reference(b);
  EXPECT_EQ(engine.traffic().entries_of(b).at(0).first_position, 0U);
  EXPECT_EQ(engine.stores().size(), 1U);  // what is pending is not stored again
}

// Section 5, LOADFAIL-01. Guards: a lookup that is answered `later` holds its request until the answer comes, with no
// other input to wake the engine; without an answer no longer than the lookup timeout.
TEST_P(hazard_timeout, waiting_for_a_lookup_is_bounded) {
  for (const bool is_answered : {true, false}) {
    auto with_tier = options();
    auto owned = std::make_unique<scripted_tier>(with_tier.num_host_slots);
    auto& tier = *owned;
    with_tier.tier = std::move(owned);
    test_engine engine(std::move(with_tier));
    engine.warm_host(make_prompt(8));
    tier.answer_lookups(lookup_verdict::retry);
    const auto id = engine.submit(make_prompt(8) + std::vector<token_id>{201}, 3);
    engine.run();
    wait(engine, lookup_timeout - 500ms);
    ASSERT_FALSE(engine.has_ended(id));
    EXPECT_EQ(engine.request(id)->reason, waiting_reason::lookup_pending);
    if (is_answered) {
      tier.answer_lookups(std::nullopt);
      compat::anon_mail(lookups_answered{}).send(engine.scheduler);
    } else {
      wait(engine, 1s);
    }
    engine.run_to_idle();
    engine.expect_reference(id);
    EXPECT_EQ(engine.record(id).summary->usage.num_host_cached_tokens, is_answered ? 8U : 0U);
    tier.answer_lookups(std::nullopt);
  }
}

// Section 8 with section 5. Guards: a load that never ends does not hold a pause longer than it would hold a request.
TEST_P(hazard_timeout, a_load_that_was_given_up_does_not_hold_requests_after_a_pause) {
  test_engine engine(options());
  const held_load run(engine);
  engine.post(pause_engine{pause_mode::keep, false, false, 5s});
  engine.run();
  wait(engine, 6s);
  ASSERT_TRUE(engine.last_control->has_value());
  EXPECT_EQ((*engine.last_control)->outcome, control_outcome::timed_out);
  EXPECT_EQ((*engine.last_control)->caches.at(0).held_by_loads, std::vector<transfer_id>{run.load});
  wait(engine, 4s);
  for (auto id : run.ids) EXPECT_EQ(engine.request(id)->phase, request_phase::waiting);
  EXPECT_EQ(engine.carry_out(resume_engine{}).outcome, control_outcome::done);
  engine.run();
  for (auto id : run.ids) engine.expect_reference(id);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 3U);
}

// Section 5. Guards: a load that a tier reset has made stale, and that never ends either, is given up too; its blocks
// stay out of reach until its end.
TEST_P(hazard_timeout, a_stale_load_that_never_ends_is_given_up) {
  test_engine engine(options());
  const held_load run(engine);
  EXPECT_FALSE(engine.reset(false, true).success);  // the tier was reset, the device was not
  wait(engine, transfer_timeout + 2s);
  for (auto id : run.ids) engine.expect_reference(id);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 3U);
  EXPECT_EQ(engine.faults(), std::vector<std::string>{});
  engine.complete(run.load);
  EXPECT_EQ(engine.snapshot().blocks.quarantined, 0U);
  EXPECT_EQ(engine.snapshot().slots.draining, 0U);
}

// Section 5. Guards: the time that a request may wait for a pending chunk begins anew after a preemption.
TEST_P(hazard_timeout, each_attempt_waits_anew) {
  test_engine engine(options());
  engine.submit(make_prompt(8), 1);
  engine.run();
  ASSERT_TRUE(engine.reset(false, false).success);
  const auto b = engine.submit(make_prompt(8) + std::vector<token_id>{201}, 30);
  engine.run();
  wait(engine, lookup_timeout - 500ms);
  ASSERT_EQ(engine.request(b)->reason, waiting_reason::chunk_pending);
  engine.system.advance(1s);
  ASSERT_TRUE(engine.run_until_tokens(b, 11));
  EXPECT_TRUE(engine.reset(true, false).success);
  engine.run();
  wait(engine, 20s);  // flush and lookup
  engine.expect_reference(b);
  EXPECT_GE(engine.record(b).summary->usage.num_preemptions, 1U);
}

}  // namespace
}  // namespace sluice::testing
