// SPDX-License-Identifier: Apache-2.0
#include "traffic_recorder.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace sluice::testing {

std::vector<block_id> recorded_transfer::blocks(std::uint16_t group) const {
  std::vector<block_id> blocks;
  for (const auto& copy : copies)
    for (std::uint32_t i = 0; i < copy.num_blocks && copy.group.value == group; ++i) blocks.push_back({copy.block.value + i});
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

/// Of a store the tables that the request was computed with before it, the last one first: a window may have passed
/// its blocks since. Of a load the one that the request runs with next.
std::vector<std::vector<block_id>> traffic_recorder::tables_of(const recorded_transfer& transfer,
                                                               std::uint16_t group) const {
  const bool is_load = transfer.direction == transfer_direction::load;
  std::vector<std::vector<block_id>> tables;
  for (std::size_t b = is_load ? transfer.num_batches_before : 0; b < batches_.size(); ++b)
    for (const auto& entry : batches_[b].entries) {
      if (entry.request != transfer.request || (!is_load && b >= transfer.num_batches_before)) continue;
      tables.insert(tables.begin(), entry.block_tables.at(group));
      if (is_load) return tables;
    }
  return tables;
}

ordinals traffic_recorder::ordinals_of(transfer_id id, std::uint16_t group) const {
  const auto& found = transfer(id);
  const auto tables = tables_of(found, group);
  ordinals result;
  for (auto block : found.blocks(group)) {
    const auto holds = [block](const auto& table) { return std::find(table.begin(), table.end(), block) != table.end(); };
    const auto table = std::find_if(tables.begin(), tables.end(), holds);
    if (table == tables.end())
      throw std::logic_error("block " + std::to_string(block.value) + " of transfer " + std::to_string(id.value) +
                             " is not in its request's block table");
    result.push_back(static_cast<std::uint32_t>(std::find(table->begin(), table->end(), block) - table->begin()));
  }
  return result;
}

ordinals traffic_recorder::ordinals_of(const std::vector<transfer_id>& ids, std::uint16_t group) const {
  ordinals result;
  for (auto id : ids) {
    const auto more = ordinals_of(id, group);
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
