// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/transfer/transfer_memory.hpp>

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

using counts = std::vector<std::uint32_t>;

/// A physical copy with offsets in place of addresses.
struct planned {
  std::size_t on_device, in_tier, num_bytes;
  friend bool operator==(const planned&, const planned&) = default;
};

std::ostream& operator<<(std::ostream& out, const planned& x) {
  return out << "device " << x.on_device << " tier " << x.in_tier << " bytes " << x.num_bytes;
}

/// Sixteen bytes per block, four blocks per chunk, in one segment of which neighbours touch.
struct memory_test : ::testing::Test {
  std::array<std::byte, 4096> device{}, arena{};
  transfer_memory memory{{32, {{{device.data(), 16, 16}}}}, {arena.data(), arena.size()}, 16, 4};

  std::vector<planned> plan(const std::vector<block_copy>& copies,
                            transfer_direction direction = transfer_direction::load) {
    physical = make_physical_copies(memory, {{5}, copies}, direction);
    std::vector<planned> found;
    for (const auto& copy : physical.batch.copies) {
      const bool is_load = direction == transfer_direction::load;
      const auto* on_device = is_load ? copy.destination : copy.source;
      const auto* in_tier = is_load ? copy.source : copy.destination;
      found.push_back({static_cast<std::size_t>(on_device - device.data()),
                       static_cast<std::size_t>(in_tier - arena.data()), copy.num_bytes});
    }
    return found;
  }

  physical_copies physical;
};

using transfer_memory_test = memory_test;

// Guards: a run of adjacent blocks in one contiguous segment is one copy.
TEST_F(transfer_memory_test, a_run_is_one_copy_in_contiguous_memory) {
  EXPECT_EQ(plan({{{2}, 0, {3}, 4}}), (std::vector<planned>{{48, 128, 64}}));
  EXPECT_EQ(physical.num_per_block_copy, (counts{1}));
}

// Guards: the batch carries the transfer's id and direction, and stores copy the other way.
TEST_F(transfer_memory_test, direction_and_tag) {
  plan({{{0}, 0, {1}, 1}}, transfer_direction::load);
  EXPECT_EQ(physical.batch.direction, gpu::copy_direction::to_device);
  EXPECT_EQ(physical.batch.tag, 5U);
  EXPECT_EQ(physical.batch.copies[0].destination, device.data() + 16);
  EXPECT_EQ(physical.batch.copies[0].source, arena.data());
  EXPECT_EQ(plan({{{1}, 2, {7}, 2}}, transfer_direction::store), (std::vector<planned>{{112, 96, 32}}));
  EXPECT_EQ(physical.batch.direction, gpu::copy_direction::to_host);
  EXPECT_EQ(physical.batch.copies[0].destination, arena.data() + 96);
}

// Guards: a load may begin inside a chunk.
TEST_F(transfer_memory_test, first_block_in_chunk_moves_the_tier_side) {
  EXPECT_EQ(plan({{{3}, 3, {10}, 1}, {{4}, 0, {12}, 2}}), (std::vector<planned>{{160, 240, 16}, {192, 256, 32}}));
  EXPECT_EQ(physical.num_per_block_copy, (counts{1, 1}));
}

// Guards: blocks with room between them are copied one by one, and the slot has no gaps.
TEST_F(transfer_memory_test, strided_blocks_are_copied_one_by_one) {
  memory.device.segments = {{{device.data(), 40, 16}}};
  EXPECT_EQ(plan({{{1}, 1, {2}, 3}}), (std::vector<planned>{{80, 80, 16}, {120, 96, 16}, {160, 112, 16}}));
  EXPECT_EQ(physical.num_per_block_copy, (counts{3}));
}

// Guards: one tensor per layer: a slot holds each block's segments one after another.
TEST_F(transfer_memory_test, several_segments) {
  memory.device.segments = {{{device.data(), 12, 12}, {device.data() + 1000, 4, 4}}};
  EXPECT_EQ(
      plan({{{0}, 1, {2}, 2}, {{1}, 0, {9}, 1}}),
      (std::vector<planned>{{24, 16, 12}, {1008, 28, 4}, {36, 32, 12}, {1012, 44, 4}, {108, 64, 12}, {1036, 76, 4}}));
  EXPECT_EQ(physical.num_per_block_copy, (counts{4, 2}));
}

// Guards: a group's copies use the group's own segments.
TEST_F(transfer_memory_test, groups_have_their_own_segments) {
  memory.device.segments.push_back({{device.data() + 2000, 16, 16}});
  const auto copies = make_physical_copies(memory, {{5}, {{{0}, 0, {1}, 1, {1}}}}, transfer_direction::load);
  ASSERT_EQ(copies.batch.copies.size(), 1U);
  EXPECT_EQ(copies.batch.copies[0].destination, device.data() + 2016);
}

// Guards: a layout of several segments moves the same bytes there and back as a contiguous one.
TEST_F(transfer_memory_test, bytes_survive_a_round_trip) {
  memory.device.segments = {{{device.data(), 20, 12}, {device.data() + 1000, 4, 4}}};
  for (std::size_t i = 0; i < device.size(); ++i) device[i] = static_cast<std::byte>(i * 7 + i / 256);
  const auto before = device;
  const std::vector<block_copy> copies{{{2}, 1, {3}, 3}};
  auto carry_out = [&](transfer_direction direction) {
    for (const auto& copy : make_physical_copies(memory, {{5}, copies}, direction).batch.copies)
      std::copy(copy.source, copy.source + copy.num_bytes, copy.destination);
  };
  carry_out(transfer_direction::store);
  EXPECT_EQ(std::vector<std::byte>(arena.begin() + 144, arena.begin() + 156),
            std::vector<std::byte>(before.begin() + 60, before.begin() + 72));
  for (const std::size_t at : {60U, 80U, 100U}) std::fill_n(device.begin() + static_cast<long>(at), 12, std::byte{0});
  std::fill_n(device.begin() + 1012, 12, std::byte{0});
  carry_out(transfer_direction::load);
  EXPECT_EQ(device, before);
}

// Guards: a block copy is good only when every physical copy of it and before it is.
TEST(transfer_memory, num_good_block_copies) {
  const counts per_block_copy{1, 4, 2};
  const std::vector<std::uint32_t> expected{0, 1, 1, 1, 1, 2, 2, 3, 3};
  for (std::size_t num_good = 0; num_good < expected.size(); ++num_good)
    EXPECT_EQ(num_good_block_copies(per_block_copy, num_good), expected[num_good]) << num_good;
  EXPECT_EQ(num_good_block_copies({}, 0), 0U);
}

}  // namespace
}  // namespace sluice
