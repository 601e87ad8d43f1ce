// SPDX-License-Identifier: Apache-2.0
//
// The invariants of the scheduler's state, checked from scratch; and its state as a snapshot.
#include <algorithm>
#include <map>

#include <sluice/actors/scheduler/scheduler_state.hpp>

namespace sluice::inline v0 {

namespace {

using fault_list = std::vector<std::string>;

void check_references(const scheduler_state& state, fault_list& faults) {
  std::map<block_id, std::uint32_t> references;
  for (const auto& [id, request] : state.requests.all())
    for (const auto& group : request.groups)
      for (auto at = group.num_passed; at < group.table.size(); ++at) ++references[group.table[at]];
  for (const auto& [id, record] : state.ledger.records())
    if (record.direction == transfer_direction::load && record.purpose != transfer_purpose::given_up)
      for (auto block : record.blocks) ++references[block];
  for (std::uint32_t b = 1; b < state.pool.num_blocks(); ++b) {
    const auto found = references.find(block_id{b});
    const auto expected = found == references.end() ? 0 : found->second;
    if (state.pool.num_references(block_id{b}) != expected)
      faults.push_back("block " + std::to_string(b) + " has " +
                       std::to_string(state.pool.num_references(block_id{b})) + " references, " +
                       std::to_string(expected) + " holders");
  }
  if (references.contains(null_block)) faults.push_back("the null block is held");
}

void check_request(const scheduler_state& state, const request_record& request, fault_list& faults) {
  auto fault = [&](const char* what) {
    faults.push_back("request " + std::to_string(request.params.id.value) + " " + what);
  };
  const auto loads = state.ledger.loads_of(request.params.id);
  const auto stores = state.ledger.stores_of(request.params.id);
  const bool holds_blocks =
      std::any_of(request.groups.begin(), request.groups.end(), [](const auto& group) { return !group.table.empty(); });
  switch (request.phase) {
    case request_phase::waiting:
      if (holds_blocks) fault("waits and holds blocks");
      if (!loads.empty()) fault("is waiting, not loading, and waits on a load");
      break;
    case request_phase::loading:
      if (!loads.empty() && !stores.empty()) fault("waits on a load while a store of its own is unsettled");
      break;
    case request_phase::running:
      if (!loads.empty()) fault("runs and waits on a load");
      break;
    case request_phase::finished: fault("has ended and is still recorded"); break;
  }
  if (request.num_computed_tokens > request.num_dispatched_tokens) fault("has computed more than was dispatched");
  if (request.is_parked && request.phase != request_phase::waiting) fault("is parked and does not wait");
  if (request.reason == waiting_reason::transfers_pending && stores.empty()) fault("waits for stores that it does not have");
  if (request.num_pending_tokens > state.num_steps_in_flight + 1) fault("has more tokens on the way than steps are in flight");
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto& group = request.groups[g];
    if (state.config.num_blocks_for(g, request.num_dispatched_tokens) > group.table.size())
      fault("has tokens beyond its block table");
    const auto first_read = state.config.shape(g).first_block_read_at(request.num_computed_tokens);
    if (group.num_passed > std::min<std::size_t>(first_read, group.table.size())) fault("gave up blocks that it still reads");
    for (std::uint32_t at = 0; at < group.num_passed; ++at)
      if (group.table[at] != null_block) fault("holds a block that its window has passed");
  }
}

/// Where a request computes, it computes alone: nobody else holds the block, and nobody can find it.
void check_written_blocks(const scheduler_state& state, const request_record& request, fault_list& faults) {
  const bool holds_loads = !state.ledger.loads_of(request.params.id).empty();
  if (request.phase == request_phase::waiting || holds_loads) return;
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto& table = request.groups[g].table;
    for (auto at = request.num_computed_tokens / state.config.block_size(g); at < table.size(); ++at) {
      const bool is_private = state.pool.num_references(table[at]) == 1 && !state.pool.is_indexed(table[at]);
      if (!is_private)
        faults.push_back("request " + std::to_string(request.params.id.value) + " computes into block " +
                         std::to_string(table[at].value) + ", which is not its own alone");
    }
  }
}

void check_transfers(const scheduler_state& state, fault_list& faults) {
  for (const auto& [id, record] : state.ledger.records()) {
    auto fault = [&, transfer = id](const char* what) {
      faults.push_back("transfer " + std::to_string(transfer.value) + " " + what);
    };
    const bool is_load = record.direction == transfer_direction::load;
    for (auto waiter : record.waiters)
      if (const auto* request = state.requests.find(waiter);
          request == nullptr || request->phase != request_phase::loading)
        fault("has a waiter that is not loading");
    for (auto block : record.blocks) {
      if (is_load && state.pool.is_indexed(block)) fault("loads into a block that is indexed as ready");
      if (record.purpose == transfer_purpose::given_up && !state.pool.is_quarantined(block))
        fault("was given up and touches a block that is not quarantined");
    }
    if (record.epoch > state.epoch) fault("is of an epoch to come");
    if (record.epoch < state.epoch && record.purpose != transfer_purpose::stale &&
        record.purpose != transfer_purpose::given_up)
      fault("is of an old epoch and not stale");
  }
}

}  // namespace

std::vector<std::string> check_integrity(const scheduler_state& state) {
  fault_list faults = state.pool.check();
  auto append = [&](const fault_list& more) { faults.insert(faults.end(), more.begin(), more.end()); };
  append(state.ledger.check());
  if (state.tier) append(state.tier->check());
  check_references(state, faults);
  for (const auto& [id, request] : state.requests.all()) {
    check_request(state, request, faults);
    check_written_blocks(state, request, faults);
  }
  check_transfers(state, faults);
  if (state.requests.size() == 0 && state.ledger.records().empty()) {
    if (state.tier && state.tier->counts().pinned != 0) faults.push_back("slots are pinned although nothing is in flight");
    if (state.pool.counts().held + state.pool.counts().quarantined != 0)
      faults.push_back("blocks are held although nothing runs");
  }
  return faults;
}

engine_snapshot make_snapshot(const scheduler_state& state) {
  engine_snapshot snapshot;
  snapshot.last_step = state.last_step;
  for (const auto& [id, request] : state.requests.all()) {
    const auto loads = state.ledger.loads_of(id);
    std::uint32_t num_blocks = 0;
    for (const auto& group : request.groups) num_blocks += group.num_held();
    const bool is_kept_out = request.phase == request_phase::waiting && !state.limits.admits;
    const auto reason = is_kept_out ? waiting_reason::paused : request.reason;
    snapshot.requests.push_back({id, request.phase, reason, request.attempt, request.num_tokens(),
                                 request.num_computed_tokens, num_blocks, {loads.begin(), loads.end()},
                                 static_cast<std::uint32_t>(state.ledger.stores_of(id).size())});
  }
  for (const auto& [id, record] : state.ledger.records())
    snapshot.transfers.push_back({id, record.direction, record.request, record.created_in,
                                  static_cast<std::uint32_t>(record.blocks.size()),
                                  static_cast<std::uint32_t>(record.waiters.size()),
                                  record.purpose == transfer_purpose::given_up});
  std::sort(snapshot.requests.begin(), snapshot.requests.end(), [](auto& a, auto& b) { return a.id < b.id; });
  std::sort(snapshot.transfers.begin(), snapshot.transfers.end(), [](auto& a, auto& b) { return a.id < b.id; });
  snapshot.blocks = state.pool.counts();
  if (state.tier) snapshot.slots = state.tier->counts();
  snapshot.totals = state.totals;
  return snapshot;
}

}  // namespace sluice::inline v0
