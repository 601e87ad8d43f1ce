// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/settle_transfers.hpp>

#include <algorithm>

namespace sluice::inline v0 {

namespace {

/// Leading blocks whose bytes are good.
std::size_t num_good_blocks(const transfer_record& record, const transfer_outcome& outcome) {
  if (outcome.result == transfer_result::ok) return record.blocks.size();
  std::size_t num_blocks = 0;
  for (std::size_t c = 0; c < std::min<std::size_t>(outcome.num_good_copies, record.copies.size()); ++c)
    num_blocks += record.copies[c].num_blocks;
  return num_blocks;
}

/// The slots of the chunks that lie wholly in the leading good copies come before the returned position.
std::size_t first_bad_slot(const transfer_record& record, const transfer_outcome& outcome) {
  if (outcome.result == transfer_result::ok || outcome.num_good_copies >= record.copies.size())
    return record.slots.size();
  const auto bad = record.copies[outcome.num_good_copies].slot;
  return static_cast<std::size_t>(std::find(record.slots.begin(), record.slots.end(), bad) - record.slots.begin());
}

std::uint64_t num_bytes(const scheduler_state& state, const transfer_record& record) {
  return record.blocks.size() * state.config.kv.bytes_per_block;
}

transfer_result result_of(const transfer_record& record, const transfer_outcome& outcome) {
  switch (record.purpose) {
    case transfer_purpose::stale: return transfer_result::stale;
    case transfer_purpose::given_up: return transfer_result::timed_out;
    case transfer_purpose::wanted:
    case transfer_purpose::unwanted: break;
  }
  return outcome.result;
}

void count(engine_totals& totals, transfer_direction direction, transfer_result result) {
  const bool is_load = direction == transfer_direction::load;
  switch (result) {
    case transfer_result::ok: ++(is_load ? totals.loads_ok : totals.stores_ok); break;
    case transfer_result::failed: ++(is_load ? totals.loads_failed : totals.stores_failed); break;
    case transfer_result::stale: ++(is_load ? totals.loads_stale : totals.stores_stale); break;
    case transfer_result::timed_out: ++(is_load ? totals.loads_timed_out : totals.stores_timed_out); break;
  }
}

void lose_load(scheduler_state& state, request_id id) {
  auto* request = state.requests.find(id);
  if (request == nullptr || request->phase != request_phase::loading) return;
  state.ledger.leave_loads(id);
  request->num_computed_tokens = 0;  // nothing was computed yet
  release_blocks(state, *request);
  state.requests.apply(*request, request_event::lose_load);
}

void index_loaded_blocks(scheduler_state& state, const transfer_record& record, std::size_t num_good) {
  const auto num_indexable = record.blocks.size() - (record.recomputes_last_block ? 1 : 0);
  for (std::size_t i = 0; i < std::min(num_good, num_indexable); ++i)
    state.pool.index(record.blocks[i], record.keys[i], record.epoch);
}

void settle_load(scheduler_state& state, const transfer_record& record, const transfer_outcome& outcome) {
  const auto result = result_of(record, outcome);
  const bool counts = result == transfer_result::ok || result == transfer_result::failed;
  if (counts) index_loaded_blocks(state, record, num_good_blocks(record, outcome));
  if (result != transfer_result::ok)
    for (auto waiter : record.waiters) lose_load(state, waiter);
  for (auto slot = first_bad_slot(record, outcome); slot < record.slots.size(); ++slot)
    state.tier->drop(record.slots[slot]);
  state.tier->unpin(record.slots);
  for (auto block = record.blocks.rbegin(); block != record.blocks.rend(); ++block) state.pool.release(*block);
  if (result == transfer_result::ok) state.totals.loaded_bytes += num_bytes(state, record);
  count(state.totals, record.direction, result);
}

void settle_store(scheduler_state& state, const transfer_record& record, const transfer_outcome& outcome) {
  const auto result = result_of(record, outcome);
  const auto num_good = first_bad_slot(record, outcome);
  for (std::size_t slot = 0; slot < record.slots.size(); ++slot) state.tier->complete(record.slots[slot], slot < num_good);
  if (record.purpose == transfer_purpose::given_up)
    for (auto block : record.blocks) state.pool.unquarantine(block);
  if (result == transfer_result::ok) state.totals.stored_bytes += num_bytes(state, record);
  count(state.totals, record.direction, result);
}

}  // namespace

std::size_t settle_transfers(scheduler_state& state, const transfers_settled& settled) {
  std::size_t num_unknown = 0;
  for (const auto& outcome : settled.outcomes) {
    const auto* known = state.ledger.find(outcome.id);
    if (known == nullptr || known->direction != settled.direction) {
      ++num_unknown;
      continue;
    }
    const auto record = *state.ledger.remove(outcome.id);
    if (record.direction == transfer_direction::load)
      settle_load(state, record, outcome);
    else
      settle_store(state, record, outcome);
  }
  return num_unknown;
}

void give_up_stores(scheduler_state& state, std::span<const transfer_id> stores) {
  for (auto id : stores) {
    const auto* record = state.ledger.find(id);
    if (record == nullptr || record->direction != transfer_direction::store ||
        record->purpose == transfer_purpose::given_up)
      continue;
    state.ledger.give_up(id);
    for (auto block : record->blocks) state.pool.quarantine(block);
    for (auto slot : record->slots) state.tier->drop(slot);
  }
}

}  // namespace sluice::inline v0
