// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/settle_transfers.hpp>

#include <algorithm>

#include <sluice/actors/rules.hpp>

namespace sluice::inline v0 {

namespace {

/// Leading blocks whose bytes are good.
std::size_t num_good_blocks(const transfer_record& record, const transfer_outcome& outcome) {
  if (outcome.result == transfer_result::ok || !holds(rule::index_good_blocks)) return record.blocks.size();
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

void count(scheduler_state& state, const transfer_record& record, std::chrono::nanoseconds duration,
           transfer_result result) {
  auto& totals = state.totals;
  const bool is_load = record.direction == transfer_direction::load;
  switch (result) {
    case transfer_result::ok:
      ++(is_load ? totals.loads_ok : totals.stores_ok);
      (is_load ? totals.loaded_bytes : totals.stored_bytes) += num_bytes(state, record);
      state.observer.transfer_took(record.direction, num_bytes(state, record), duration);
      break;
    case transfer_result::failed: ++(is_load ? totals.loads_failed : totals.stores_failed); break;
    case transfer_result::stale: ++(is_load ? totals.loads_stale : totals.stores_stale); break;
    case transfer_result::timed_out: ++(is_load ? totals.loads_timed_out : totals.stores_timed_out); break;
  }
}

void lose_load(scheduler_state& state, request_id id, bool was_refused = false) {
  auto* request = state.requests.find(id);
  if (request == nullptr || request->phase != request_phase::loading) return;
  state.ledger.leave_loads(id);
  request->num_computed_tokens = 0;  // nothing was computed yet
  release_blocks(state, *request);
  state.requests.apply(*request, request_event::lose_load);
  request->is_load_refused = was_refused;
}

/// Tells of a block that was loaded, if there is still a request that knows its tokens.
void tell_of_loaded(scheduler_state& state, const transfer_record& record, group_id group, const content_key& key) {
  const request_record* request = state.config.records_kv_events ? state.requests.find(record.request) : nullptr;
  if (request == nullptr) return;
  const auto& keys = request->groups[group.value].keys;
  const auto at = static_cast<std::uint32_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
  if (at < keys.size()) state.events.device_stored(sequence_of(*request, group.value), at, at + 1);
}

void index_loaded_blocks(scheduler_state& state, const transfer_record& record, std::size_t num_good) {
  std::size_t position = 0;
  for (const auto& copy : record.copies)
    for (std::uint32_t i = 0; i < copy.num_blocks && position < num_good; ++i, ++position) {
      if (!record.is_shareable(position)) continue;
      state.pool.index(record.blocks[position], record.keys[position], record.epoch, copy.group);
      tell_of_loaded(state, record, copy.group, record.keys[position]);
    }
}

/// The tier's copies of these chunks of a transfer are not to be trusted.
void drop_chunks(scheduler_state& state, const transfer_record& record, std::size_t first) {
  for (auto at = first; at < record.slots.size(); ++at)
    if (state.tier->drop(record.slots[at]))
      state.events.removed(state.tier_place(), std::span(&record.chunks[at], 1));
}

void begin_quarantine(scheduler_state& state, const transfer_record& record) {
  if (!holds(rule::quarantine_given_up)) return;
  for (auto block : record.blocks) state.pool.quarantine(block);
}

void end_quarantine(scheduler_state& state, const transfer_record& record) {
  if (!holds(rule::quarantine_given_up)) return;
  for (auto block : record.blocks) state.pool.unquarantine(block);
}

void release_targets(scheduler_state& state, const transfer_record& record) {
  if (record.purpose == transfer_purpose::given_up) return end_quarantine(state, record);
  if (!holds(rule::hold_load_targets)) return;
  for (auto block = record.blocks.rbegin(); block != record.blocks.rend(); ++block) state.pool.release(*block);
}

void settle_load(scheduler_state& state, const transfer_record& record, const transfer_outcome& outcome) {
  const auto result = result_of(record, outcome);
  const bool counts = result == transfer_result::ok || result == transfer_result::failed;
  if (counts) index_loaded_blocks(state, record, num_good_blocks(record, outcome));
  if (result != transfer_result::ok)
    for (auto waiter : record.waiters) lose_load(state, waiter, outcome.was_refused);
  if (counts && !outcome.was_refused)  // else the tier has forgotten them, and may have the same chunks anew
    drop_chunks(state, record, first_bad_slot(record, outcome));
  state.tier->unpin(record.slots);
  release_targets(state, record);
  count(state, record, outcome.duration, result);
}

void settle_store(scheduler_state& state, const transfer_record& record, const transfer_outcome& outcome) {
  const auto result = result_of(record, outcome);
  const auto num_good = holds(rule::forget_failed_stores) ? first_bad_slot(record, outcome) : record.slots.size();
  for (std::size_t slot = 0; slot < record.slots.size(); ++slot) state.tier->complete(record.slots[slot], slot < num_good);
  if (record.purpose == transfer_purpose::wanted) {  // else the chunks were forgotten, and may be described anew
    state.events.stored(state.tier_place(), std::span(record.chunks).first(num_good));
    state.events.forget(std::span(record.chunks).subspan(num_good));
  }
  if (record.purpose == transfer_purpose::given_up) end_quarantine(state, record);
  for (const auto& chunk : record.chunks) wake_chunk_waiters(state, chunk);
  wake_store_waiter(state, record.request);
  count(state, record, outcome.duration, result);
}

void give_up_load(scheduler_state& state, const transfer_record& record) {
  const auto waiters = record.waiters;
  const bool is_stale = record.purpose == transfer_purpose::stale;
  state.ledger.give_up(record.id);
  for (auto waiter : waiters) lose_load(state, waiter);
  begin_quarantine(state, record);
  if (holds(rule::hold_load_targets))
    for (auto block : record.blocks) state.pool.release(block);
  if (!is_stale) drop_chunks(state, record, 0);
}

void give_up_store(scheduler_state& state, const transfer_record& record) {
  if (record.purpose == transfer_purpose::wanted) state.events.forget(record.chunks);
  state.ledger.give_up(record.id);
  begin_quarantine(state, record);
  for (auto slot : record.slots) state.tier->drop(slot);
  for (const auto& chunk : record.chunks) wake_chunk_waiters(state, chunk);
  wake_store_waiter(state, record.request);
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

void give_up(scheduler_state& state, std::span<const transfer_id> transfers) {
  for (auto id : transfers) {
    const auto* record = state.ledger.find(id);
    if (record == nullptr || record->purpose == transfer_purpose::given_up) continue;
    if (record->direction == transfer_direction::load)
      give_up_load(state, *record);
    else
      give_up_store(state, *record);
  }
}

}  // namespace sluice::inline v0
