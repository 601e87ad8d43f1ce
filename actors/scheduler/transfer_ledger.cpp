// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/transfer_ledger.hpp>

#include <algorithm>
#include <cassert>

namespace sluice::inline v0 {

transfer_record& transfer_ledger::add(transfer_record record) {
  assert(record.id.value > last_id_);
  last_id_ = record.id.value;
  const bool is_load = record.direction == transfer_direction::load;
  num_loads_ += is_load;
  if (is_load) {
    for (std::size_t i = 0; i < record.blocks.size(); ++i)
      if (record.is_shareable(i)) loading_[record.keys[i]] = {record.id, record.blocks[i]};
    for (auto waiter : record.waiters) by_request_[waiter].loads.push_back(record.id);
  } else {
    for (auto block : record.blocks) readers_[block].push_back(record.id);
    by_request_[record.request].stores.push_back(record.id);
  }
  return records_[record.id] = std::move(record);
}

const transfer_record* transfer_ledger::find(transfer_id id) const {
  auto found = records_.find(id);
  return found == records_.end() ? nullptr : &found->second;
}

std::optional<transfer_record> transfer_ledger::remove(transfer_id id) {
  auto found = records_.find(id);
  if (found == records_.end()) return std::nullopt;
  auto record = std::move(found->second);
  records_.erase(found);
  if (record.direction == transfer_direction::load) {
    --num_loads_;
    unjoin(record);
    for (auto waiter : record.waiters) forget_for_request(waiter, id, &request_transfers::loads);
  } else if (record.purpose != transfer_purpose::given_up) {
    unfence(record);
    forget_for_request(record.request, id, &request_transfers::stores);
  }
  return record;
}

void transfer_ledger::add_waiter(transfer_id load, request_id request) {
  auto& record = records_.at(load);
  assert(record.direction == transfer_direction::load);
  record.waiters.push_back(request);
  if (record.purpose == transfer_purpose::unwanted) record.purpose = transfer_purpose::wanted;
  by_request_[request].loads.push_back(load);
}

void transfer_ledger::leave_loads(request_id request) {
  auto found = by_request_.find(request);
  if (found == by_request_.end()) return;
  for (auto id : found->second.loads) {
    auto& record = records_.at(id);
    std::erase(record.waiters, request);
    if (record.waiters.empty() && record.purpose == transfer_purpose::wanted)
      record.purpose = transfer_purpose::unwanted;
  }
  found->second.loads.clear();
  if (found->second.stores.empty()) by_request_.erase(found);
}

void transfer_ledger::mark_stale(transfer_id id) {
  auto& record = records_.at(id);
  if (record.direction == transfer_direction::load) unjoin(record);
  if (record.purpose != transfer_purpose::given_up) record.purpose = transfer_purpose::stale;
}

void transfer_ledger::give_up(transfer_id id) {
  auto& record = records_.at(id);
  if (record.purpose == transfer_purpose::given_up) return;
  record.purpose = transfer_purpose::given_up;
  if (record.direction == transfer_direction::load) {
    unjoin(record);
  } else {
    unfence(record);
    forget_for_request(record.request, id, &request_transfers::stores);
  }
}

std::span<const transfer_id> transfer_ledger::loads_of(request_id request) const {
  auto found = by_request_.find(request);
  if (found == by_request_.end()) return {};
  return found->second.loads;
}

std::span<const transfer_id> transfer_ledger::stores_of(request_id request) const {
  auto found = by_request_.find(request);
  if (found == by_request_.end()) return {};
  return found->second.stores;
}

std::span<const transfer_id> transfer_ledger::stores_reading(block_id block) const {
  auto found = readers_.find(block);
  if (found == readers_.end()) return {};
  return found->second;
}

std::optional<loading_block> transfer_ledger::find_loading(const content_key& key) const {
  auto found = loading_.find(key);
  if (found == loading_.end()) return std::nullopt;
  return found->second;
}

std::vector<transfer_id> transfer_ledger::ids(transfer_direction direction) const {
  std::vector<transfer_id> found;
  for (const auto& [id, record] : records_)
    if (record.direction == direction) found.push_back(id);
  std::sort(found.begin(), found.end());
  return found;
}

void transfer_ledger::forget_for_request(request_id request, transfer_id id,
                                         std::vector<transfer_id> request_transfers::*list) {
  auto found = by_request_.find(request);
  if (found == by_request_.end()) return;
  std::erase(found->second.*list, id);
  if (found->second.loads.empty() && found->second.stores.empty()) by_request_.erase(found);
}

void transfer_ledger::unfence(const transfer_record& store) {
  for (auto block : store.blocks) {
    auto found = readers_.find(block);
    if (found == readers_.end()) continue;
    std::erase(found->second, store.id);
    if (found->second.empty()) readers_.erase(found);
  }
}

void transfer_ledger::unjoin(const transfer_record& load) {
  for (const auto& key : load.keys)
    if (auto found = loading_.find(key); found != loading_.end() && found->second.load == load.id)
      loading_.erase(found);
}

std::vector<std::string> transfer_ledger::check() const {
  std::vector<std::string> faults;
  std::size_t num_waits = 0, num_stores = 0, num_loads = 0;
  for (const auto& [id, record] : records_) {
    auto fault = [&](const char* what) { faults.push_back("transfer " + std::to_string(id.value) + " " + what); };
    if (record.direction == transfer_direction::load) {
      ++num_loads;
      num_waits += record.waiters.size();
      for (auto waiter : record.waiters) {
        const auto loads = loads_of(waiter);
        if (std::count(loads.begin(), loads.end(), id) != 1) fault("is not listed once for a waiter");
      }
    } else if (record.purpose != transfer_purpose::given_up) {
      ++num_stores;
      const auto stores = stores_of(record.request);
      if (std::count(stores.begin(), stores.end(), id) != 1) fault("is not listed once for its request");
      for (auto block : record.blocks)
        if (const auto ids = stores_reading(block); std::count(ids.begin(), ids.end(), id) == 0)
          fault("reads a block that is not fenced");
    }
  }
  for (const auto& [request, transfers] : by_request_) {
    num_waits -= transfers.loads.size();
    num_stores -= transfers.stores.size();
  }
  if (num_waits != 0 || num_stores != 0) faults.push_back("the ledger lists transfers that have no record");
  if (num_loads != num_loads_) faults.push_back("wrong number of loads");
  return faults;
}

}  // namespace sluice::inline v0
