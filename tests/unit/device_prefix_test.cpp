// SPDX-License-Identifier: Apache-2.0
//
// Scenarios of the device's prefix cache: which blocks a request gets, shares, finds and gives back. Blocks of 16
// tokens unless a test says otherwise.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/block_hasher.hpp>
#include <sluice/actors/scheduler/reset_caches.hpp>

#include "scheduler_fixture.hpp"

namespace sluice {
namespace {

using unit::free_list;
using list = std::vector<std::uint32_t>;

/// The 48 tokens that most requests here begin with, and others.
std::vector<token_id> with_tail(token_id first, std::size_t count) {
  auto tokens = unit::tokens_from(0, 48);
  for (const auto token : unit::tokens_from(first, count)) tokens.push_back(token);
  return tokens;
}

// Guards: O116, of the same tokens only a request with the same salt finds anything.
TEST(device_prefix, o116_salt_separates_caches) {
  unit::scheduler_fixture engine({.block_size = 16, .num_device_blocks = 11});
  engine.submit(100, with_tail(1000, 11), 64, "s1");
  engine.run_step();
  const auto hits = [&](std::uint64_t id, token_id tail, const std::string& salt) {
    engine.submit(id, with_tail(tail, 5), 64, salt);
    const auto plan = engine.run_step();
    EXPECT_EQ(plan.admissions.size(), 1U);
    EXPECT_EQ(plan.admissions.at(0).num_computed_tokens, 16 * plan.admissions[0].tables.at(0).shared.size());
    return unit::values(plan.admissions[0].tables[0].shared);
  };
  EXPECT_EQ(hits(101, 2000, "s1"), (list{1, 2, 3}));
  EXPECT_EQ(hits(102, 3000, "s2"), list{});
}

// Guards: O116, the salt enters the first block's key, and the others' through it alone.
TEST(device_prefix, o116_salt_enters_the_first_key_only) {
  const block_hasher hasher({"model", "u8", 64, 16, {}});
  const auto tokens = unit::tokens_from(0, 48);
  std::vector<content_key> keys, others, continued;
  hasher.extend(tokens, "s1", keys);
  hasher.extend(tokens, "s2", others);
  ASSERT_EQ(keys.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NE(keys[i], others.at(i));
  continued = {keys[0]};
  hasher.extend(tokens, "s2", continued);
  EXPECT_EQ(continued, keys);
}

// Guards: O117, the order in which requests get and give back blocks.
TEST(device_prefix, o117_allocation_sharing_and_free_order) {
  unit::scheduler_fixture engine({.block_size = 16, .num_device_blocks = 11});
  const auto& pool = engine.state.pool;

  engine.submit(100, with_tail(1000, 7));
  engine.run_step();
  EXPECT_EQ(engine.table(100), (list{1, 2, 3, 4}));
  for (std::uint32_t b = 1; b <= 4; ++b) EXPECT_EQ(pool.is_indexed({b}), b != 4);

  engine.submit(101, with_tail(2000, 5));
  const auto second = engine.run_step();
  ASSERT_EQ(second.admissions.size(), 1U);
  EXPECT_EQ(unit::values(second.admissions[0].tables.at(0).shared), (list{1, 2, 3}));
  EXPECT_EQ(second.admissions[0].num_computed_tokens, 48U);
  EXPECT_EQ(engine.table(101), (list{1, 2, 3, 5}));
  for (std::uint32_t b = 1; b <= 3; ++b) EXPECT_EQ(pool.num_references({b}), 2U);
  EXPECT_EQ(pool.num_allocatable(), 5U);

  engine.abort(100);
  engine.abort(101);
  EXPECT_EQ(free_list(pool), (list{5, 4, 6, 7, 8, 9, 10, 3, 2, 1}));

  engine.submit(102, with_tail(3000, 6));
  engine.run_step();
  EXPECT_EQ(engine.table(102), (list{1, 2, 3, 5}));
  EXPECT_EQ(pool.num_allocatable(), 6U);
  engine.abort(102);

  engine.submit(103, unit::tokens_from(10000, 160));
  const auto last = engine.plan();
  ASSERT_EQ(last.entries.size(), 1U);
  EXPECT_EQ(unit::values(last.entries[0].new_blocks[0]), (list{5, 4, 6, 7, 8, 9, 10, 3, 2, 1}));
  engine.run(last);
  EXPECT_EQ(pool.num_allocatable(), 0U);
}

// Guards: O118, a hit is not sacrificed for the same request's new blocks.
TEST(device_prefix, o118_hit_blocks_are_protected_from_the_same_requests_allocation) {
  unit::scheduler_fixture engine({.block_size = 16, .num_device_blocks = 3});
  const auto first = unit::tokens_from(0, 16), second = unit::tokens_from(1000, 16);
  engine.compute_and_end(100, first);
  engine.compute_and_end(101, second);
  EXPECT_EQ(free_list(engine.state.pool), (list{1, 2}));
  auto both = first;
  both.insert(both.end(), second.begin(), second.end());
  engine.submit(102, both);
  const auto plan = engine.run_step();
  ASSERT_EQ(plan.admissions.size(), 1U);
  EXPECT_EQ(unit::values(plan.admissions[0].tables.at(0).shared), (list{1}));
  EXPECT_EQ(plan.admissions[0].num_computed_tokens, 16U);
  EXPECT_EQ(engine.table(102), (list{1, 2}));
  EXPECT_EQ(engine.state.totals.device_evictions, 1U);
}

// Guards: O119, blocks of 4 tokens: with caching off nothing is shared or kept, and who does not fit waits.
TEST(device_prefix, o119_caching_switched_off) {
  unit::scheduler_fixture engine({.block_size = 4, .num_device_blocks = 5, .enable_prefix_caching = false});
  engine.submit(100, unit::tokens_from(0, 10));
  engine.run_step();
  EXPECT_EQ(engine.table(100), (list{1, 2, 3}));
  engine.abort(100);
  EXPECT_EQ(engine.state.pool.counts(), (block_counts{4, 0, 0, 0}));

  engine.submit(101, unit::tokens_from(0, 16));
  const auto second = engine.run_step();
  ASSERT_EQ(second.admissions.size(), 1U);
  EXPECT_EQ(second.admissions[0].num_computed_tokens, 0U);
  EXPECT_EQ(second.admissions[0].tables.at(0).shared.size(), 0U);
  EXPECT_EQ(engine.table(101).size(), 4U);
  EXPECT_EQ(engine.state.pool.num_allocatable(), 0U);

  engine.submit(102, unit::tokens_from(0, 4));
  EXPECT_TRUE(engine.plan().admissions.empty());
  EXPECT_TRUE(engine.table(102).empty());
}

/// A pool whose free list is `order`, where 0 stands for block 1 and so on.
block_pool queue_of(const list& order) {
  block_pool pool(static_cast<std::uint32_t>(order.size()) + 1);
  for (std::uint32_t block = 1; block <= order.size(); ++block) pool.allocate({block});
  for (auto number = order.rbegin(); number != order.rend(); ++number) pool.release({*number + 1});
  return pool;
}

/// Takes the first `count` blocks, which are in no list then.
list pop(block_pool& pool, std::size_t count) {
  list popped;
  for (; count > 0; --count) {
    const auto first = pool.first_allocatable();
    EXPECT_NE(first, null_block);
    pool.allocate(first);
    const auto left = free_list(pool);
    EXPECT_EQ(std::count(left.begin(), left.end(), first.value), 0);
    popped.push_back(first.value - 1);
  }
  EXPECT_EQ(pool.check(), std::vector<std::string>{});
  return popped;
}

// Guards: O121, the free list: taking the first, taking one out of the middle, adding at the end, and at its end there
// is nothing to take.
TEST(device_prefix, o121_the_free_list_gives_and_takes_anywhere) {
  auto pool = queue_of({0, 1, 2, 3, 4});
  EXPECT_EQ(pop(pool, 1), list{0});
  EXPECT_EQ(pool.num_allocatable(), 4U);
  pool.allocate({3});  // number 2
  EXPECT_EQ(pool.num_allocatable(), 3U);
  pool.index({3}, content_key{1}, {1});
  pool.release({3});  // with content: to the end
  EXPECT_EQ(pool.num_allocatable(), 4U);
  EXPECT_EQ(pop(pool, 4), (list{1, 3, 4, 2}));
  EXPECT_EQ(pool.num_allocatable(), 0U);
  EXPECT_EQ(pool.first_allocatable(), null_block);
}

// Guards: O121, what is given back in front goes before what was there, the last given back first.
TEST(device_prefix, o121_the_free_list_takes_blocks_back_in_front) {
  block_pool pool(7);
  for (std::uint32_t block = 1; block <= 6; ++block) pool.allocate({block});
  pool.release({1});
  for (const auto& numbers : {list{4, 5}, list{1, 2}})  // each list in front, in its own order
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) pool.release({*number + 1});
  EXPECT_EQ(pool.num_allocatable(), 5U);
  EXPECT_EQ(pop(pool, 5), (list{1, 2, 4, 5, 0}));
}

// Guards: O121, several are taken in the order of the list, however it came about.
TEST(device_prefix, o121_the_free_list_gives_several_in_order) {
  auto pool = queue_of({1, 3, 5, 4, 0, 2});
  EXPECT_EQ(pop(pool, 0), list{});
  EXPECT_EQ(pop(pool, 1), list{1});
  EXPECT_EQ(pop(pool, 2), (list{3, 5}));
  EXPECT_EQ(pop(pool, 3), (list{4, 0, 2}));
  EXPECT_EQ(pool.first_allocatable(), null_block);
}

// Guards: O125, the device cache is reset only while nobody holds a block, and then wholly.
TEST(device_prefix, o125_a_reset_needs_an_idle_pool) {
  unit::scheduler_fixture engine({.block_size = 16, .num_device_blocks = 11});
  const auto& pool = engine.state.pool;
  engine.submit(100, with_tail(1000, 7));
  engine.run_step();
  engine.submit(101, with_tail(2000, 5));
  engine.run_step();
  EXPECT_EQ(engine.table(101), (list{1, 2, 3, 5}));

  const auto refused = reset_caches(engine.state, {.device = true});
  EXPECT_FALSE(refused.success);
  EXPECT_EQ(refused.caches.at(0).held_by_running_requests, 2U);
  const auto& keys = engine.request(100).groups[0].keys;
  ASSERT_EQ(keys.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(pool.find(keys[i]), block_id{i + 1});

  const auto kept_keys = keys;
  engine.abort(100);
  engine.abort(101);
  const auto done = reset_caches(engine.state, {.device = true});
  EXPECT_TRUE(done.success);
  EXPECT_EQ(done.caches.at(0).num_dropped, 3U);
  for (const auto& key : kept_keys) EXPECT_FALSE(pool.find(key).has_value());
  for (std::uint32_t block = 1; block <= 10; ++block) EXPECT_FALSE(pool.is_indexed({block}));
  EXPECT_EQ(pool.counts(), (block_counts{10, 0, 0, 0}));
}

}  // namespace
}  // namespace sluice
