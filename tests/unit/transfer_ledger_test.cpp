// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/transfer_ledger.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

using ids = std::vector<transfer_id>;
using faults = std::vector<std::string>;
constexpr request_id first{1}, second{2}, third{3};

content_key key(std::uint8_t number) {
  content_key key{};
  key[0] = number;
  return key;
}

/// A load of content 10, 11, ... into blocks `from`, `from` + 1, ...
transfer_id add_load(transfer_ledger& ledger, request_id request, std::uint32_t from, std::uint8_t num_blocks,
                     bool recomputes_last_block = false) {
  transfer_record record;
  record.id = ledger.next_id();
  record.direction = transfer_direction::load;
  record.request = request;
  for (std::uint8_t i = 0; i < num_blocks; ++i) {
    record.blocks.push_back({from + i});
    record.keys.push_back(key(10 + i));
    record.copies.push_back({{i}, 0, {from + i}, 1});
  }
  if (recomputes_last_block) record.private_blocks = {record.blocks.size() - 1};
  record.waiters = {request};
  return ledger.add(std::move(record)).id;
}

transfer_id add_store(transfer_ledger& ledger, request_id request, const std::vector<block_id>& blocks) {
  transfer_record record;
  record.id = ledger.next_id();
  record.request = request;
  record.blocks = blocks;
  for (const auto block : blocks) record.copies.push_back({{block.value}, 0, block, 1});
  return ledger.add(std::move(record)).id;
}

ids to_ids(std::span<const transfer_id> span) { return {span.begin(), span.end()}; }

/// The ledger, checked at the end of each test.
struct ledger_test : ::testing::Test {
  ~ledger_test() override { EXPECT_EQ(ledger.check(), faults{}); }
  transfer_ledger ledger;
};

using transfer_ledger_test = ledger_test;

// Guards: ids rise and are never used again, also after a removal.
TEST_F(transfer_ledger_test, ids_rise) {
  EXPECT_EQ(ledger.next_id(), transfer_id{1});
  EXPECT_EQ(add_store(ledger, first, {{5}}), transfer_id{1});
  ledger.remove({1});
  EXPECT_EQ(ledger.next_id(), transfer_id{2});
}

// Guards: a transfer settles once and leaves no record.
TEST_F(transfer_ledger_test, remove_takes_the_record_out) {
  const auto store = add_store(ledger, first, {{5}, {6}});
  const auto load = add_load(ledger, second, 7, 2);
  EXPECT_EQ(ledger.num_loads(), 1U);
  EXPECT_EQ(ledger.num_stores(), 1U);
  EXPECT_EQ(ledger.ids(transfer_direction::load), ids{load});
  EXPECT_EQ(ledger.ids(transfer_direction::store), ids{store});
  const auto record = ledger.remove(store);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->blocks, (std::vector<block_id>{{5}, {6}}));
  EXPECT_FALSE(ledger.remove(store).has_value());
  EXPECT_EQ(ledger.find(store), nullptr);
  ledger.remove(load);
  EXPECT_TRUE(ledger.records().empty());
  EXPECT_TRUE(ledger.stores_of(first).empty());
  EXPECT_TRUE(ledger.loads_of(second).empty());
  EXPECT_TRUE(ledger.stores_reading({5}).empty());
  EXPECT_FALSE(ledger.find_loading(key(10)).has_value());
}

// Guards: the load and store actors get what they need and no more.
TEST_F(transfer_ledger_test, a_job_is_id_and_copies) {
  const auto store = add_store(ledger, first, {{5}, {8}});
  const auto job = ledger.find(store)->job();
  EXPECT_EQ(job.id, store);
  EXPECT_EQ(job.copies, (std::vector<block_copy>{{{5}, 0, {5}, 1}, {{8}, 0, {8}, 1}}));
}

// Guards: re-use of a block names exactly the stores that read it.
TEST_F(transfer_ledger_test, stores_fence_the_blocks_they_read) {
  const auto one = add_store(ledger, first, {{5}, {6}});
  const auto two = add_store(ledger, second, {{6}});
  EXPECT_EQ(to_ids(ledger.stores_reading({5})), ids{one});
  EXPECT_EQ(to_ids(ledger.stores_reading({6})), (ids{one, two}));
  EXPECT_TRUE(ledger.stores_reading({7}).empty());
  EXPECT_EQ(to_ids(ledger.stores_of(second)), ids{two});
  ledger.remove(one);
  EXPECT_EQ(to_ids(ledger.stores_reading({6})), ids{two});
}

// Guards: loads fence nothing; their targets are held by references.
TEST_F(transfer_ledger_test, loads_fence_no_block) {
  add_load(ledger, first, 5, 2);
  EXPECT_TRUE(ledger.stores_reading({5}).empty());
}

// Guards: a load can be joined by content, but for the block in which its creator recomputes.
TEST_F(transfer_ledger_test, finds_what_is_being_loaded) {
  const auto load = add_load(ledger, first, 5, 3, true);
  const auto found = ledger.find_loading(key(11));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->load, load);
  EXPECT_EQ(found->block, block_id{6});
  EXPECT_FALSE(ledger.find_loading(key(12)).has_value());
  EXPECT_FALSE(ledger.find_loading(key(13)).has_value());
}

// Guards: two loads of the same content; the end of the older one does not hide the newer one.
TEST_F(transfer_ledger_test, the_newest_load_of_a_content_is_joined) {
  const auto one = add_load(ledger, first, 5, 1);
  const auto two = add_load(ledger, second, 9, 1);
  EXPECT_EQ(ledger.find_loading(key(10))->load, two);
  ledger.remove(one);
  EXPECT_EQ(ledger.find_loading(key(10))->block, block_id{9});
}

// Guards: a load runs on for those who still wait; it is unwanted only without any, and wanted again when joined.
TEST_F(transfer_ledger_test, waiters_come_and_go) {
  const auto load = add_load(ledger, first, 5, 2);
  ledger.add_waiter(load, second);
  EXPECT_EQ(ledger.find(load)->waiters, (std::vector<request_id>{first, second}));
  EXPECT_EQ(to_ids(ledger.loads_of(second)), ids{load});
  ledger.leave_loads(first);
  EXPECT_EQ(ledger.find(load)->purpose, transfer_purpose::wanted);
  EXPECT_TRUE(ledger.loads_of(first).empty());
  ledger.leave_loads(second);
  EXPECT_EQ(ledger.find(load)->purpose, transfer_purpose::unwanted);
  EXPECT_TRUE(ledger.find_loading(key(10)).has_value());
  ledger.add_waiter(load, third);
  EXPECT_EQ(ledger.find(load)->purpose, transfer_purpose::wanted);
  ledger.leave_loads({99});
}

// Guards: a request that leaves loading leaves all its loads and keeps its stores.
TEST_F(transfer_ledger_test, leaving_loads_leaves_all_of_them) {
  const auto store = add_store(ledger, second, {{9}});
  const auto one = add_load(ledger, first, 5, 1);
  const auto two = add_load(ledger, second, 6, 1);
  ledger.add_waiter(one, second);
  EXPECT_EQ(to_ids(ledger.loads_of(second)), (ids{two, one}));
  ledger.leave_loads(second);
  EXPECT_TRUE(ledger.loads_of(second).empty());
  EXPECT_EQ(to_ids(ledger.stores_of(second)), ids{store});
  EXPECT_EQ(ledger.find(one)->purpose, transfer_purpose::wanted);
  EXPECT_EQ(ledger.find(two)->purpose, transfer_purpose::unwanted);
}

// Guards: after a reset a load can no longer be joined, but its waiter still waits for its physical end.
TEST_F(transfer_ledger_test, a_stale_load_is_not_joined) {
  const auto load = add_load(ledger, first, 5, 2);
  ledger.mark_stale(load);
  EXPECT_EQ(ledger.find(load)->purpose, transfer_purpose::stale);
  EXPECT_FALSE(ledger.find_loading(key(10)).has_value());
  EXPECT_EQ(to_ids(ledger.loads_of(first)), ids{load});
  ledger.leave_loads(first);
  EXPECT_EQ(ledger.find(load)->purpose, transfer_purpose::stale);
}

// Guards: a stale store still reads its blocks and still counts for its request.
TEST_F(transfer_ledger_test, a_stale_store_still_fences) {
  const auto store = add_store(ledger, first, {{5}});
  ledger.mark_stale(store);
  EXPECT_EQ(to_ids(ledger.stores_reading({5})), ids{store});
  EXPECT_EQ(to_ids(ledger.stores_of(first)), ids{store});
}

// Guards: a store that was given up is waited for by nobody, and its record lives until its physical end.
TEST_F(transfer_ledger_test, a_given_up_store_counts_for_nobody) {
  const auto store = add_store(ledger, first, {{5}});
  const auto other = add_store(ledger, first, {{5}});
  ledger.give_up(store);
  ledger.give_up(store);
  EXPECT_EQ(to_ids(ledger.stores_reading({5})), ids{other});
  EXPECT_EQ(to_ids(ledger.stores_of(first)), ids{other});
  EXPECT_EQ(ledger.num_stores(), 2U);
  ledger.mark_stale(store);
  EXPECT_EQ(ledger.find(store)->purpose, transfer_purpose::given_up);
  EXPECT_TRUE(ledger.remove(store).has_value());
}

// Guards: a load that was given up can no longer be joined.
TEST_F(transfer_ledger_test, a_given_up_load_is_not_joined) {
  const auto load = add_load(ledger, first, 5, 1);
  ledger.give_up(load);
  EXPECT_EQ(ledger.find(load)->purpose, transfer_purpose::given_up);
  EXPECT_FALSE(ledger.find_loading(key(10)).has_value());
  ledger.remove(load);
  EXPECT_TRUE(ledger.loads_of(first).empty());
}

}  // namespace
}  // namespace sluice
