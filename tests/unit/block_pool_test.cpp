// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/block_pool.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler_fixture.hpp"

namespace sluice {
namespace {

using unit::free_list;
using list = std::vector<std::uint32_t>;
using faults = std::vector<std::string>;

content_key key(std::uint8_t number) {
  content_key key{};
  key[0] = number;
  return key;
}

// Guards: block 0 is never handed out, the others come in order.
TEST(block_pool, starts_with_all_but_the_null_block_free_in_order) {
  const block_pool pool(5);
  EXPECT_EQ(pool.num_blocks(), 5U);
  EXPECT_EQ(pool.num_usable(), 4U);
  EXPECT_EQ(pool.num_allocatable(), 4U);
  EXPECT_EQ(free_list(pool), (list{1, 2, 3, 4}));
  EXPECT_EQ(pool.counts(), (block_counts{4, 0, 0, 0}));
}

// Guards: each state is counted once, and the sum stays constant.
TEST(block_pool, counts_each_block_in_one_state) {
  block_pool pool(6);
  for (std::uint32_t b = 1; b <= 3; ++b) EXPECT_FALSE(pool.allocate({b}));
  pool.index({1}, key(1), {1});
  pool.release({1});
  pool.quarantine({2});
  pool.release({2});
  EXPECT_EQ(pool.counts(), (block_counts{2, 1, 1, 1}));
  EXPECT_EQ(pool.num_allocatable(), 3U);
  EXPECT_EQ(pool.check(), faults{});
}

// Guards: content-free blocks return to the front, cached ones to the back.
TEST(block_pool, hands_out_free_blocks_before_cached_ones) {
  block_pool pool(6);
  for (std::uint32_t b = 1; b <= 3; ++b) pool.allocate({b});
  pool.index({1}, key(1), {1});
  pool.index({2}, key(2), {1});
  for (const auto b : {2U, 1U, 3U}) pool.release({b});
  EXPECT_EQ(free_list(pool), (list{3, 4, 5, 2, 1}));
}

// Guards: a second holder keeps the block out of the free list until it lets go, too.
TEST(block_pool, returns_a_shared_block_with_its_last_reference) {
  block_pool pool(4);
  pool.allocate({1});
  pool.share({1});
  EXPECT_EQ(pool.num_references({1}), 2U);
  pool.release({1});
  EXPECT_EQ(free_list(pool), (list{2, 3}));
  pool.release({1});
  EXPECT_EQ(free_list(pool), (list{1, 2, 3}));
}

// Guards: a hit takes a cached block out of the free list and keeps its content.
TEST(block_pool, shares_a_cached_block) {
  block_pool pool(3);
  pool.allocate({1});
  pool.index({1}, key(1), {4});
  pool.release({1});
  pool.share({1});
  EXPECT_EQ(pool.find(key(1)), block_id{1});
  EXPECT_EQ(pool.epoch({1}), epoch_id{4});
  EXPECT_EQ(pool.counts(), (block_counts{1, 0, 1, 0}));
}

// Guards: writing a cached block is an eviction and its content cannot be found afterwards.
TEST(block_pool, allocating_a_cached_block_evicts_it) {
  block_pool pool(3);
  pool.allocate({1});
  pool.index({1}, key(1), {1});
  pool.release({1});
  EXPECT_TRUE(pool.allocate({1}));
  EXPECT_EQ(pool.find(key(1)), std::nullopt);
  EXPECT_FALSE(pool.is_indexed({1}));
}

// Guards: of two blocks with the same content the first stands, unless the second is of a newer epoch.
TEST(block_pool, indexes_a_key_once_and_prefers_the_newer_epoch) {
  block_pool pool(5);
  for (std::uint32_t b = 1; b <= 3; ++b) pool.allocate({b});
  pool.index({1}, key(1), {2});
  pool.index({2}, key(1), {2});
  EXPECT_EQ(pool.find(key(1)), block_id{1});
  EXPECT_FALSE(pool.is_indexed({2}));
  pool.index({2}, key(1), {1});
  EXPECT_EQ(pool.find(key(1)), block_id{1});
  pool.index({3}, key(1), {3});
  EXPECT_EQ(pool.find(key(1)), block_id{3});
  EXPECT_FALSE(pool.is_indexed({1}));
  EXPECT_EQ(pool.epoch({3}), epoch_id{3});
  EXPECT_EQ(pool.check(), faults{});
}

// Guards: a block that lost its content while cached is free, so it goes before the ones that are still cached.
TEST(block_pool, a_cached_block_that_is_forgotten_becomes_free) {
  block_pool pool(4);
  for (std::uint32_t b = 1; b <= 3; ++b) {
    pool.allocate({b});
    pool.index({b}, key(static_cast<std::uint8_t>(b)), {1});
  }
  for (std::uint32_t b = 1; b <= 3; ++b) pool.release({b});
  pool.forget({2});
  pool.forget({2});
  EXPECT_EQ(pool.counts(), (block_counts{1, 2, 0, 0}));
  EXPECT_EQ(free_list(pool), (list{2, 1, 3}));
  EXPECT_FALSE(pool.allocate({2}));
  EXPECT_EQ(pool.check(), faults{});
}

// Guards: a reset of the device cache forgets all content and says how much there was.
TEST(block_pool, forgets_all) {
  block_pool pool(4);
  for (std::uint32_t b = 1; b <= 2; ++b) {
    pool.allocate({b});
    pool.index({b}, key(static_cast<std::uint8_t>(b)), {1});
    pool.release({b});
  }
  EXPECT_EQ(pool.forget_all(), 2U);
  EXPECT_EQ(pool.forget_all(), 0U);
  EXPECT_EQ(pool.find(key(1)), std::nullopt);
  EXPECT_EQ(pool.counts(), (block_counts{3, 0, 0, 0}));
  EXPECT_EQ(pool.check(), faults{});
}

// Guards: a free block that a given-up store reads is in no list until every such store has settled.
TEST(block_pool, quarantine_is_counted) {
  block_pool pool(4);
  pool.quarantine({2});
  pool.quarantine({2});
  EXPECT_EQ(free_list(pool), (list{1, 3}));
  EXPECT_EQ(pool.counts(), (block_counts{2, 0, 0, 1}));
  pool.unquarantine({2});
  EXPECT_TRUE(pool.is_quarantined({2}));
  EXPECT_EQ(free_list(pool), (list{1, 3}));
  pool.unquarantine({2});
  EXPECT_FALSE(pool.is_quarantined({2}));
  EXPECT_EQ(free_list(pool), (list{2, 1, 3}));
}

// Guards: a held block stays with its holder and its content can be found; it is locked away only when let go.
TEST(block_pool, quarantine_of_a_held_block_waits_for_its_holder) {
  block_pool pool(4);
  pool.allocate({1});
  pool.index({1}, key(1), {1});
  pool.quarantine({1});
  EXPECT_EQ(pool.counts(), (block_counts{2, 0, 1, 0}));
  EXPECT_EQ(pool.find(key(1)), block_id{1});
  pool.release({1});
  EXPECT_EQ(pool.counts(), (block_counts{2, 0, 0, 1}));
  EXPECT_EQ(pool.find(key(1)), std::nullopt);
  pool.unquarantine({1});
  EXPECT_EQ(free_list(pool), (list{1, 2, 3}));
}

// Guards: the end of a quarantine takes nothing from a holder.
TEST(block_pool, quarantine_may_end_while_the_block_is_held) {
  block_pool pool(3);
  pool.allocate({1});
  pool.quarantine({1});
  pool.unquarantine({1});
  EXPECT_EQ(pool.counts(), (block_counts{1, 0, 1, 0}));
  pool.release({1});
  EXPECT_EQ(free_list(pool), (list{1, 2}));
  EXPECT_EQ(pool.check(), faults{});
}

// Guards: content of a cached block that is quarantined can no longer be found.
TEST(block_pool, quarantine_of_a_cached_block_forgets_it) {
  block_pool pool(3);
  pool.allocate({1});
  pool.index({1}, key(1), {1});
  pool.release({1});
  pool.quarantine({1});
  EXPECT_EQ(pool.find(key(1)), std::nullopt);
  EXPECT_EQ(pool.counts(), (block_counts{1, 0, 0, 1}));
  EXPECT_EQ(pool.check(), faults{});
}

}  // namespace
}  // namespace sluice
