// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/commit_step.hpp>

#include <algorithm>
#include <cassert>
#include <unordered_map>

namespace sluice::inline v0 {

namespace {

void count_finish(engine_totals& totals, finish_reason reason) {
  switch (reason) {
    case finish_reason::stop: ++totals.finished_stop; break;
    case finish_reason::length: ++totals.finished_length; break;
    case finish_reason::abort: ++totals.finished_abort; break;
    case finish_reason::error: ++totals.finished_error; break;
  }
}

std::optional<finish_reason> reason_to_finish(const scheduler_state& state, const request_record& request) {
  const auto& ends = state.config.model.end_tokens;
  const bool is_end = std::find(ends.begin(), ends.end(), request.tokens.back()) != ends.end();
  if (is_end && !request.params.ignore_eos) return finish_reason::stop;
  if (request.num_output_tokens() >= request.params.max_tokens) return finish_reason::length;
  if (request.num_tokens() >= state.config.max_model_len) return finish_reason::length;
  return std::nullopt;
}

void index_full_blocks(scheduler_state& state, request_record& request, std::uint32_t first_position) {
  if (!state.config.enable_prefix_caching) return;
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto block_size = state.config.block_size(g);
    auto& group = request.groups[g];
    for (auto b = first_position / block_size; b < request.num_computed_tokens / block_size; ++b)
      state.pool.index(group.table[b], group.keys[b], request.epoch);
  }
}

/// Chunks of the group whose KV is complete and that were not offered yet; empty when an earlier refusal should not
/// be tried again before something changes.
std::vector<chunk_key> chunks_to_offer(const scheduler_state& state, const request_record& request, std::size_t g,
                                       bool is_ending) {
  const auto& group = request.groups[g];
  const auto num_complete = request.num_computed_tokens / state.tokens_per_chunk(g);
  std::vector<chunk_key> keys;
  if (num_complete <= group.num_chunks_at_refusal && !is_ending) return keys;
  for (auto chunk = group.next_chunk_to_offer; chunk < num_complete; ++chunk)
    keys.push_back(key_of_chunk(state, request, g, chunk));
  return keys;
}

transfer_job create_store(scheduler_state& state, const request_record& request, std::size_t g,
                          const offer_outcome& outcome) {
  transfer_record record;
  record.id = state.ledger.next_id();
  record.direction = transfer_direction::store;
  record.request = request.params.id;
  record.group = group_id{static_cast<std::uint16_t>(g)};
  record.created_in = state.last_step;
  record.epoch = state.epoch;
  const auto& group = request.groups[g];
  const auto factor = state.config.blocks_per_chunk;
  for (const auto& accepted : outcome.accepted) {
    const auto first = (group.next_chunk_to_offer + static_cast<std::uint32_t>(accepted.position)) * factor;
    const std::vector<block_id> blocks(group.table.begin() + first, group.table.begin() + first + factor);
    const auto copies = make_copies(first, blocks, {accepted.slot}, factor);
    record.copies.insert(record.copies.end(), copies.begin(), copies.end());
    record.blocks.insert(record.blocks.end(), blocks.begin(), blocks.end());
    record.slots.push_back(accepted.slot);
  }
  return state.ledger.add(std::move(record)).job();
}

void offer_chunks(scheduler_state& state, request_record& request, bool is_ending, std::vector<transfer_job>& stores) {
  auto* tier = state.offload_tier();
  if (tier == nullptr || request.epoch != state.epoch) return;
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    auto& group = request.groups[g];
    const auto keys = chunks_to_offer(state, request, g, is_ending);
    if (keys.empty()) continue;
    const auto outcome = tier->offer(keys);
    state.totals.host_evictions += outcome.evicted.size();
    if (outcome.is_refused) {
      ++state.totals.refused_offers;
      group.num_chunks_at_refusal = request.num_computed_tokens / state.tokens_per_chunk(g);
      continue;
    }
    if (!outcome.accepted.empty()) stores.push_back(create_store(state, request, g, outcome));
    group.next_chunk_to_offer += static_cast<std::uint32_t>(keys.size());
  }
}

void count_tokens(engine_totals& totals, const request_record& request, const planned_entry& entry) {
  const auto end = entry.first_position + entry.num_tokens;
  totals.scheduled_tokens += entry.num_tokens;
  totals.recomputed_tokens +=
      std::min(end, std::max(entry.first_position, request.max_computed_tokens)) - entry.first_position;
}

void commit_entry(scheduler_state& state, const planned_entry& entry, const token_id* sampled,
                  commit_effects& effects) {
  auto* request = state.requests.find(entry.request);
  if (request == nullptr || request->attempt != entry.attempt) return;
  count_tokens(state.totals, *request, entry);
  request->num_computed_tokens = entry.first_position + entry.num_tokens;
  std::optional<finish_reason> reason;
  if (sampled != nullptr) {
    request->tokens.push_back(*sampled);
    request->unsent.push_back(*sampled);
    ++state.totals.generation_tokens;
    extend_keys(state, *request);
    reason = reason_to_finish(state, *request);
  }
  index_full_blocks(state, *request, entry.first_position);
  offer_chunks(state, *request, reason.has_value(), effects.stores);
  if (reason)
    effects.finished.push_back(end_request(state, entry.request, *reason));
  else if (sampled != nullptr)
    effects.with_new_tokens.push_back(entry.request);
}

}  // namespace

request_finished end_request(scheduler_state& state, request_id id, finish_reason reason, errc code,
                             std::string message) {
  auto& found = *state.requests.find(id);
  release_blocks(state, found);
  state.ledger.leave_loads(id);
  state.requests.apply(found, request_event::finish);
  auto request = state.requests.remove(id);
  count_finish(state.totals, reason);
  request.usage.num_output_tokens = request.num_output_tokens();
  return {id, std::move(request.unsent), reason, code, std::move(message), request.usage};
}

commit_effects commit_step(scheduler_state& state, const step_plan& plan, const step_result& result) {
  commit_effects effects;
  auto sampled = result.sampled.begin();
  for (const auto& entry : plan.entries) {
    const token_id* token = nullptr;
    if (entry.samples) {
      assert(sampled != result.sampled.end() && sampled->request == entry.request);
      token = &sampled->token;
      ++sampled;
    }
    commit_entry(state, entry, token, effects);
  }
  return effects;
}

}  // namespace sluice::inline v0
