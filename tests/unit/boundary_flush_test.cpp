// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/preemption/boundary_flush.hpp>

#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

using ids = std::vector<transfer_id>;

pending_transfer store(std::uint64_t id, std::uint64_t request = 1) {
  return {{id}, transfer_direction::store, {request}};
}
pending_transfer load(std::uint64_t id, std::uint64_t request = 1) {
  return {{id}, transfer_direction::load, {request}};
}

boundary_flush flush_of(std::vector<pending_transfer> pending, ids reused, const ids& created_now) {
  return make_boundary_flush({{9}, std::move(pending), std::move(reused)}, created_now);
}

void expect_flush(const boundary_flush& flush, const ids& stores, const ids& older_loads, std::uint32_t num_excluded) {
  EXPECT_EQ(flush.stores, stores);
  EXPECT_EQ(flush.older_loads, older_loads);
  EXPECT_EQ(flush.num_excluded_loads, num_excluded);
}

// Guards: the design's story. The old stores are flushed, the load of the same step is left alone.
TEST(boundary_flush, subtracts_the_loads_created_in_this_step) {
  expect_flush(flush_of({store(3), store(4), load(7)}, {}, {{7}}), {{3}, {4}}, {}, 1);
}

// Guards: an older load of a preempted request is named, not skipped.
TEST(boundary_flush, names_an_older_load) {
  expect_flush(flush_of({store(3), load(5), load(7)}, {}, {{7}}), {{3}}, {{5}}, 1);
}

// Guards: that nothing was staged is no excuse for an older load.
TEST(boundary_flush, without_loads_in_this_step_every_load_is_older) {
  expect_flush(flush_of({load(6), load(5)}, {}, {}), {}, {{5}, {6}}, 0);
}

// Guards: loads of this step that no preempted request waits on are nobody's business here.
TEST(boundary_flush, loads_of_others_are_not_counted) {
  expect_flush(flush_of({store(3)}, {}, {{7}, {8}}), {{3}}, {}, 0);
}

// Guards: a boundary may turn out empty.
TEST(boundary_flush, may_be_empty) {
  expect_flush(flush_of({}, {}, {}), {}, {}, 0);
  expect_flush(flush_of({load(7)}, {}, {{7}}), {}, {}, 1);
}

// Guards: stores whose blocks are re-used are flushed beside those of the preempted, each once and rising.
TEST(boundary_flush, joins_reused_and_pending_stores) {
  expect_flush(flush_of({store(6), store(2), store(6)}, {{4}, {2}, {4}}, {}), {{2}, {4}, {6}}, {}, 0);
}

// Guards: a store that two requests share is flushed once.
TEST(boundary_flush, a_shared_store_is_flushed_once) {
  expect_flush(flush_of({store(3, 1), store(3, 2)}, {{3}}, {}), {{3}}, {}, 0);
}

// Guards: one load with several waiters is one load, subtracted or named.
TEST(boundary_flush, a_load_with_several_waiters_counts_once) {
  expect_flush(flush_of({load(7, 1), load(7, 2), load(7, 3)}, {}, {{7}}), {}, {}, 1);
  expect_flush(flush_of({load(5, 1), load(5, 2)}, {}, {{7}}), {}, {{5}}, 0);
}

}  // namespace
}  // namespace sluice
