// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/pool_overlay.hpp>

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "pool_model.hpp"
#include "test_seed.hpp"

namespace sluice {
namespace {

// Block 1 held without content, 2 held with content 2, 3 cached with content 3, 4 and 5 free, 6 quarantined.
block_pool make_pool() {
  block_pool pool(7);
  for (std::uint32_t b = 1; b <= 3; ++b) pool.allocate({b});
  for (std::uint32_t b = 2; b <= 3; ++b) pool.index({b}, unit::key_of(b), {1});
  pool.release({3});
  pool.quarantine({6});
  return pool;
}

// Guards: an overlay that changes nothing predicts the pool's own order and never hands out a quarantined block.
TEST(pool_overlay, hands_out_in_the_pools_order) {
  const auto pool = make_pool();
  pool_overlay overlay(pool);
  EXPECT_EQ(overlay.num_allocatable(), 3U);
  for (const auto expected : {4U, 5U, 3U}) EXPECT_EQ(overlay.allocate().value, expected);
  EXPECT_EQ(overlay.num_allocatable(), 0U);
}

// Guards: a plan in the making is no change of the pool, and no copy of it either.
TEST(pool_overlay, leaves_the_pool_as_it_is) {
  static_assert(std::is_constructible_v<pool_overlay, const block_pool&>);
  static_assert(sizeof(pool_overlay) < 512);
  const auto pool = make_pool();
  pool_overlay overlay(pool);
  overlay.release({2});
  overlay.share({3});
  overlay.allocate();
  EXPECT_EQ(pool.counts(), (block_counts{2, 1, 2, 1}));
  EXPECT_EQ(pool.num_references({2}), 1U);
  EXPECT_EQ(pool.first_allocatable(), block_id{4});
}

// Guards: what a victim gives up comes first without content and last with content.
TEST(pool_overlay, released_blocks_take_the_places_the_pool_would_give_them) {
  const auto pool = make_pool();
  pool_overlay overlay(pool);
  overlay.release({2});
  overlay.release({1});
  EXPECT_EQ(overlay.num_allocatable(), 5U);
  for (const auto expected : {1U, 4U, 5U, 3U, 2U}) EXPECT_EQ(overlay.allocate().value, expected);
}

// Guards: a prefix hit of the plan is not given out for writing by the same plan.
TEST(pool_overlay, a_shared_cached_block_is_not_handed_out) {
  const auto pool = make_pool();
  pool_overlay overlay(pool);
  EXPECT_TRUE(overlay.is_allocatable({3}));
  overlay.share({3});
  EXPECT_FALSE(overlay.is_allocatable({3}));
  EXPECT_TRUE(overlay.holds_content({3}));
  EXPECT_EQ(overlay.num_allocatable(), 2U);
  for (const auto expected : {4U, 5U}) EXPECT_EQ(overlay.allocate().value, expected);
}

// Guards: content in a block that the plan gave away cannot be hit later in the same plan.
TEST(pool_overlay, an_allocated_block_loses_its_content) {
  const auto pool = make_pool();
  pool_overlay overlay(pool);
  EXPECT_TRUE(overlay.holds_content({3}));
  for (int i = 0; i < 3; ++i) overlay.allocate();
  EXPECT_FALSE(overlay.holds_content({3}));
  overlay.release({3});
  EXPECT_EQ(overlay.allocate(), block_id{3});
}

// Guards: a block that a given-up store reads stays locked away when its holder lets go.
TEST(pool_overlay, a_quarantined_block_is_never_allocatable) {
  auto pool = make_pool();
  pool.quarantine({1});
  pool_overlay overlay(pool);
  overlay.release({1});
  EXPECT_EQ(overlay.num_allocatable(), 3U);
  EXPECT_FALSE(overlay.is_allocatable({1}));
  EXPECT_FALSE(overlay.is_allocatable({6}));
  for (const auto expected : {4U, 5U, 3U}) EXPECT_EQ(overlay.allocate().value, expected);
}

// Guards: a block that is let go, taken and let go again has one place, the later one.
TEST(pool_overlay, a_block_released_twice_has_one_place) {
  auto pool = make_pool();
  pool.index({1}, unit::key_of(1), {1});
  pool_overlay overlay(pool);
  overlay.release({1});
  overlay.release({2});
  overlay.share({1});
  overlay.share({3});
  overlay.release({1});
  overlay.release({3});
  EXPECT_EQ(overlay.num_allocatable(), 5U);
  for (const auto expected : {4U, 5U, 2U, 1U, 3U}) EXPECT_EQ(overlay.allocate().value, expected);
}

constexpr std::uint32_t num_blocks = 14;

/// A pool in some state, and the model in the same.
struct random_pool {
  block_pool pool{num_blocks};
  unit::pool_model model{num_blocks};

  explicit random_pool(std::mt19937_64& generator) {
    for (std::uint32_t b = 1; b < num_blocks; ++b) {
      if (unit::below(generator, 4) == 0) continue;
      pool.allocate({b}), model.allocate(b);
      if (unit::below(generator, 2) == 0) pool.index({b}, unit::key_of(b), {1}), model.index(b, b, 1);
    }
    for (std::uint32_t b = 1; b < num_blocks; ++b)
      if (unit::below(generator, 6) == 0) pool.quarantine({b}), model.quarantine(b);
    for (std::uint32_t i = 0; i < num_blocks; ++i)
      if (const auto b = 1 + unit::below(generator, num_blocks - 1); model.blocks[b].num_references > 0)
        pool.release({b}), model.release(b);
  }
};

/// One random operation on the overlay and the same on the model; returns how the pool will do it.
std::function<void(block_pool&)> one_operation(pool_overlay& overlay, unit::pool_model& model,
                                               std::mt19937_64& generator) {
  const auto b = 1 + unit::below(generator, num_blocks - 1);
  const auto& block = model.blocks[b];
  switch (unit::below(generator, 3)) {
    case 0: {
      if (model.order.empty()) break;
      const auto taken = overlay.allocate();
      EXPECT_EQ(taken.value, model.order.front());
      model.allocate(taken.value);
      return [taken](block_pool& pool) { pool.allocate(taken); };
    }
    case 1:
      if (block.num_references == 0 && !block.content) break;
      overlay.share({b}), model.share(b);
      return [b](block_pool& pool) { pool.share({b}); };
    case 2:
      if (block.num_references == 0) break;
      overlay.release({b}), model.release(b);
      return [b](block_pool& pool) { pool.release({b}); };
  }
  return [](block_pool&) {};
}

// Guards: what the overlay predicts is what the pool does when the plan is applied.
TEST(pool_overlay, predicts_the_pool) {
  unit::for_each_seed([](std::mt19937_64& generator) {
    for (int round = 0; round < 200; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      random_pool both(generator);
      std::vector<std::function<void(block_pool&)>> plan;
      pool_overlay overlay(both.pool);
      for (int i = 0; i < 40; ++i) {
        plan.push_back(one_operation(overlay, both.model, generator));
        ASSERT_EQ(overlay.num_allocatable(), both.model.order.size());
        for (std::uint32_t b = 1; b < num_blocks; ++b) {
          const auto& block = both.model.blocks[b];
          ASSERT_EQ(overlay.is_allocatable({b}), block.num_references == 0 && block.num_quarantines == 0);
        }
      }
      for (const auto& apply : plan) apply(both.pool);
      ASSERT_NO_FATAL_FAILURE(unit::expect_same(both.pool, both.model, num_blocks));
    }
  });
}

}  // namespace
}  // namespace sluice
