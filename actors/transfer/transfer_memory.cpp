// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/transfer/transfer_memory.hpp>

namespace sluice::inline v0 {

namespace {

gpu::copy directed(std::byte* on_device, std::byte* in_tier, std::size_t num_bytes, transfer_direction direction) {
  if (direction == transfer_direction::load) return {on_device, in_tier, num_bytes};
  return {in_tier, on_device, num_bytes};
}

}  // namespace

physical_copies make_physical_copies(const transfer_memory& memory, const transfer_job& job,
                                     transfer_direction direction) {
  physical_copies result;
  result.batch.tag = job.id.value;
  result.batch.direction =
      direction == transfer_direction::load ? gpu::copy_direction::to_device : gpu::copy_direction::to_host;
  auto& copies = result.batch.copies;
  for (const auto& run : job.copies) {
    const auto& segments = memory.device.segments[run.group.value];
    const bool is_contiguous = segments.size() == 1 && segments[0].stride_bytes == segments[0].bytes_per_block;
    const auto num_before = copies.size();
    auto* in_tier = memory.tier.data + run.slot.value * memory.slot_bytes() +
                    run.first_block_in_chunk * memory.bytes_per_block;
    const auto num_steps = is_contiguous ? 1 : run.num_blocks;
    const auto blocks_per_step = is_contiguous ? run.num_blocks : 1;
    for (std::uint32_t i = 0; i < num_steps; ++i)
      for (const auto& segment : segments) {
        auto* on_device = segment.base + (std::size_t{run.block.value} + i) * segment.stride_bytes;
        const auto num_bytes = segment.bytes_per_block * blocks_per_step;
        copies.push_back(directed(on_device, in_tier, num_bytes, direction));
        in_tier += num_bytes;
      }
    result.num_per_block_copy.push_back(static_cast<std::uint32_t>(copies.size() - num_before));
  }
  return result;
}

std::uint32_t num_good_block_copies(const std::vector<std::uint32_t>& num_per_block_copy,
                                    std::size_t num_good_copies) {
  std::uint32_t num_good = 0;
  for (auto num_copies : num_per_block_copy) {
    if (num_good_copies < num_copies) break;
    num_good_copies -= num_copies;
    ++num_good;
  }
  return num_good;
}

}  // namespace sluice::inline v0
