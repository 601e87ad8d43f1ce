// SPDX-License-Identifier: Apache-2.0
//
// The block pool in its plainest form: a list and a record per block. What the pool and its overlay are held to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/block_pool.hpp>

namespace sluice::unit {

inline content_key key_of(std::uint32_t number) {
  content_key key{};
  for (std::size_t i = 0; i < sizeof(number); ++i) key[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return key;
}

struct pool_model {
  struct block {
    std::uint32_t num_references = 0, num_quarantines = 0;
    std::optional<std::uint32_t> content;
    std::uint64_t epoch = 0;
  };

  explicit pool_model(std::uint32_t num_blocks) : blocks(num_blocks) {
    for (std::uint32_t b = 1; b < num_blocks; ++b) order.push_back(b);
  }

  std::optional<std::uint32_t> find(std::uint32_t content) const {
    for (std::uint32_t b = 1; b < blocks.size(); ++b)
      if (blocks[b].content == content) return b;
    return std::nullopt;
  }

  bool allocate(std::uint32_t b) {
    order.remove(b);
    const bool evicts = blocks[b].content.has_value();
    blocks[b].content.reset();
    blocks[b].num_references = 1;
    return evicts;
  }

  void share(std::uint32_t b) {
    order.remove(b);
    ++blocks[b].num_references;
  }

  void release(std::uint32_t b) {
    if (--blocks[b].num_references > 0) return;
    if (blocks[b].num_quarantines > 0)
      blocks[b].content.reset();
    else if (blocks[b].content)
      order.push_back(b);
    else
      order.push_front(b);
  }

  void index(std::uint32_t b, std::uint32_t content, std::uint64_t epoch) {
    if (blocks[b].content) return;
    if (const auto other = find(content)) {
      if (blocks[*other].epoch >= epoch) return;
      forget(*other);
    }
    blocks[b].content = content;
    blocks[b].epoch = epoch;
  }

  void forget(std::uint32_t b) {
    if (!blocks[b].content) return;
    blocks[b].content.reset();
    if (std::find(order.begin(), order.end(), b) == order.end()) return;
    order.remove(b);
    order.push_front(b);
  }

  void quarantine(std::uint32_t b) {
    ++blocks[b].num_quarantines;
    if (blocks[b].num_references > 0) return;
    blocks[b].content.reset();
    order.remove(b);
  }

  void unquarantine(std::uint32_t b) {
    if (--blocks[b].num_quarantines == 0 && blocks[b].num_references == 0) order.push_front(b);
  }

  block_counts counts() const {
    block_counts counts;
    for (std::uint32_t b = 1; b < blocks.size(); ++b) {
      if (blocks[b].num_references > 0)
        ++counts.held;
      else if (blocks[b].num_quarantines > 0)
        ++counts.quarantined;
      else
        ++(blocks[b].content ? counts.cached : counts.free);
    }
    return counts;
  }

  std::vector<block> blocks;
  std::list<std::uint32_t> order;  // the free list
};

/// Everything the pool can be asked says what the model says.
inline void expect_same(const block_pool& pool, const pool_model& model, std::uint32_t num_contents) {
  std::vector<std::uint32_t> order;
  for (auto b = pool.first_allocatable(); b != null_block; b = pool.next_allocatable(b)) order.push_back(b.value);
  ASSERT_EQ(order, std::vector<std::uint32_t>(model.order.begin(), model.order.end()));
  ASSERT_EQ(pool.num_allocatable(), model.order.size());
  ASSERT_EQ(pool.counts(), model.counts());
  for (std::uint32_t b = 1; b < pool.num_blocks(); ++b) {
    ASSERT_EQ(pool.num_references({b}), model.blocks[b].num_references) << "block " << b;
    ASSERT_EQ(pool.is_quarantined({b}), model.blocks[b].num_quarantines > 0) << "block " << b;
    ASSERT_EQ(pool.is_indexed({b}), model.blocks[b].content.has_value()) << "block " << b;
    if (model.blocks[b].content) {
      ASSERT_EQ(pool.epoch({b}).value, model.blocks[b].epoch) << "block " << b;
    }
  }
  for (std::uint32_t content = 0; content < num_contents; ++content) {
    const auto found = pool.find(key_of(content));
    const auto expected = model.find(content);
    ASSERT_EQ(found.has_value(), expected.has_value()) << "content " << content;
    if (found) {
      ASSERT_EQ(found->value, *expected) << "content " << content;
    }
  }
  ASSERT_EQ(pool.check(), std::vector<std::string>{});
}

}  // namespace sluice::unit
