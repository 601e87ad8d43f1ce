// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/block_pool.hpp>

#include <gtest/gtest.h>

#include "pool_model.hpp"
#include "test_seed.hpp"

namespace sluice {
namespace {

constexpr std::uint32_t num_blocks = 12, num_contents = 8;

struct pool_and_model {
  block_pool pool{num_blocks};
  unit::pool_model model{num_blocks};

  void allocate(std::uint32_t b) { ASSERT_EQ(pool.allocate({b}), model.allocate(b)); }
  void share(std::uint32_t b) { pool.share({b}), model.share(b); }
  void release(std::uint32_t b) { pool.release({b}), model.release(b); }
  void forget(std::uint32_t b) { pool.forget({b}), model.forget(b); }
  void quarantine(std::uint32_t b) { pool.quarantine({b}), model.quarantine(b); }
  void unquarantine(std::uint32_t b) { pool.unquarantine({b}), model.unquarantine(b); }
  void index(std::uint32_t b, std::uint32_t content, std::uint64_t epoch) {
    pool.index({b}, unit::key_of(content), {epoch}), model.index(b, content, epoch);
  }
  void forget_all() {
    std::uint64_t num_cached = 0;
    for (std::uint32_t b = 1; b < num_blocks; ++b) {
      num_cached += model.blocks[b].content.has_value();
      model.blocks[b].content.reset();
    }
    ASSERT_EQ(pool.forget_all(), num_cached);
  }
};

void one_operation(pool_and_model& both, std::mt19937_64& generator) {
  const auto b = 1 + unit::below(generator, num_blocks - 1);
  const auto& block = both.model.blocks[b];
  const bool is_held = block.num_references > 0;
  const bool is_listed = !is_held && block.num_quarantines == 0;
  switch (unit::below(generator, 10)) {
    case 0:
    case 1:
      if (!both.model.order.empty()) both.allocate(both.model.order.front());
      break;
    case 2:
      if (is_listed) both.allocate(b);
      break;
    case 3:
      if (is_held || block.content) both.share(b);
      break;
    case 4:
    case 5:
      if (is_held) both.release(b);
      break;
    case 6:
      if (is_held) both.index(b, unit::below(generator, num_contents), 1 + unit::below(generator, 3));
      break;
    case 7: both.forget(b); break;
    case 8:
      if (block.num_quarantines < 3) both.quarantine(b);
      break;
    case 9:
      if (block.num_quarantines > 0) both.unquarantine(b);
      break;
  }
}

// Guards: every state, count and order of the pool after any sequence of operations.
TEST(block_pool, behaves_as_its_model) {
  unit::for_each_seed([](std::mt19937_64& generator) {
    pool_and_model both;
    for (int i = 0; i < 4000; ++i) {
      SCOPED_TRACE("operation " + std::to_string(i));
      one_operation(both, generator);
      if (both.model.counts().held == 0) both.forget_all();
      ASSERT_NO_FATAL_FAILURE(unit::expect_same(both.pool, both.model, num_contents));
    }
  });
}

}  // namespace
}  // namespace sluice
