// SPDX-License-Identifier: Apache-2.0
#include "traffic_recorder.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice::testing {

std::vector<block_id> recorded_transfer::blocks() const {
  std::vector<block_id> blocks;
  for (const auto& copy : copies)
    for (std::uint32_t i = 0; i < copy.num_blocks; ++i) blocks.push_back({copy.block.value + i});
  return blocks;
}

void traffic_recorder::add(const step_batch& batch) {
  if (batches_.empty() || batches_.back().step < batch.step) batches_.push_back(batch);
}

void traffic_recorder::add(const flush_stores& flush) {
  if (flush.step == last_flush_) return;
  last_flush_ = flush.step;
  flushed_.insert(flushed_.end(), flush.ids.begin(), flush.ids.end());
}

void traffic_recorder::add(transfer_direction direction, step_id step, const std::vector<transfer_job>& jobs,
                           const std::function<request_id(transfer_id)>& owner) {
  for (const auto& job : jobs)
    if (!transfers_.contains(job.id))
      transfers_[job.id] = {job.id, direction, owner(job.id), step, job.copies, batches_.size()};
}

std::vector<transfer_id> traffic_recorder::find(transfer_direction direction, request_id request) const {
  std::vector<transfer_id> ids;
  for (const auto& [id, transfer] : transfers_)
    if (transfer.direction == direction && transfer.request == request) ids.push_back(id);
  return ids;
}

/// Of a store the table that its blocks were computed with, of a load the one that the request runs with next.
std::vector<block_id> traffic_recorder::table_of(const recorded_transfer& transfer) const {
  std::vector<block_id> table;
  for (std::size_t b = 0; b < batches_.size(); ++b)
    for (const auto& entry : batches_[b].entries) {
      if (entry.request != transfer.request) continue;
      if (transfer.direction == transfer_direction::store && b >= transfer.num_batches_before) return table;
      table = entry.block_tables.at(0);
      if (transfer.direction == transfer_direction::load && b >= transfer.num_batches_before) return table;
    }
  return transfer.direction == transfer_direction::store ? table : std::vector<block_id>{};
}

ordinals traffic_recorder::ordinals_of(transfer_id id) const {
  const auto& found = transfer(id);
  const auto table = table_of(found);
  ordinals result;
  for (auto block : found.blocks()) {
    const auto at = std::find(table.begin(), table.end(), block);
    if (at == table.end())
      throw std::logic_error("block " + std::to_string(block.value) + " of transfer " + std::to_string(id.value) +
                             " is not in its request's block table");
    result.push_back(static_cast<std::uint32_t>(at - table.begin()));
  }
  return result;
}

ordinals traffic_recorder::ordinals_of(const std::vector<transfer_id>& ids) const {
  ordinals result;
  for (auto id : ids) {
    const auto more = ordinals_of(id);
    result.insert(result.end(), more.begin(), more.end());
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<batch_entry> traffic_recorder::entries_of(request_id request) const {
  std::vector<batch_entry> entries;
  for (const auto& batch : batches_)
    for (const auto& entry : batch.entries)
      if (entry.request == request) entries.push_back(entry);
  return entries;
}

}  // namespace sluice::testing
