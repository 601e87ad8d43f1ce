// SPDX-License-Identifier: Apache-2.0
//
// What the fixture sees of the messages to the actors, and of the memory they work on.
#include "test_engine.hpp"

namespace sluice::testing {

namespace {

void append(std::vector<std::byte>& bytes, gpu::memory_view memory, std::size_t first_block, std::size_t num_blocks,
            std::size_t bytes_per_block) {
  const auto* from = memory.data + first_block * bytes_per_block;
  bytes.insert(bytes.end(), from, from + num_blocks * bytes_per_block);
}

}  // namespace

/// Every message is the next one of its actor at some turn.
void test_engine::watch_traffic() {
  const auto owner = [this](transfer_id id) {
    for (const auto& transfer : snapshot().transfers)
      if (transfer.id == id) return transfer.request;
    return request_id{};
  };
  if (const auto message = system.peek<stage_loads>(loader))
    traffic_.add(transfer_direction::load, message->step, message->loads, owner);
  if (const auto message = system.peek<submit_loads>(loader))
    traffic_.add(transfer_direction::load, message->step, message->loads, owner);
  if (const auto message = system.peek<submit_stores>(storer))
    traffic_.add(transfer_direction::store, message->step, message->stores, owner);
  if (const auto message = system.peek<flush_stores>(storer)) traffic_.add(*message);
  if (const auto message = system.peek<execute_step>(executor)) traffic_.add(message->batch);
}

const traffic_recorder& test_engine::traffic() {
  watch_traffic();
  return traffic_;
}

std::vector<std::byte> test_engine::device_bytes(transfer_id id) {
  std::vector<std::byte> bytes;
  for (const auto& copy : traffic().transfer(id).copies)
    append(bytes, pool_memory.view(), copy.block.value, copy.num_blocks, model.kv(options.block_size).bytes_per_block);
  return bytes;
}

std::vector<std::byte> test_engine::tier_bytes(transfer_id id) {
  std::vector<std::byte> bytes;
  for (const auto& copy : traffic().transfer(id).copies)
    append(bytes, tier_memory.view(),
           std::size_t{copy.slot.value} * options.blocks_per_chunk + copy.first_block_in_chunk, copy.num_blocks,
           model.kv(options.block_size).bytes_per_block);
  return bytes;
}

}  // namespace sluice::testing
