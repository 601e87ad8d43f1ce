// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/commit_step.hpp>

#include <algorithm>
#include <cassert>
#include <optional>

#include <sluice/actors/rules.hpp>
#include <sluice/actors/scheduler/store_chunks.hpp>
#include <sluice/actors/scheduler/window_reach.hpp>

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

/// Blocks of a window that no hit can end behind are not worth finding.
bool is_worth_indexing(const scheduler_state& state, const request_record& request, std::size_t g, std::uint32_t block) {
  const auto shape = state.config.shape(g);
  if (!shape.is_window()) return true;
  const window_reach reach{shape.window_tokens, shape.block_size, state.config.block_alignment(),
                           state.config.retention_interval};
  return reach_of(reach, block, request.num_prompt_tokens(), request.num_computed_tokens) != unit_reach::never;
}

void index_full_blocks(scheduler_state& state, request_record& request, std::uint32_t first_position) {
  if (!state.config.enable_prefix_caching) return;
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto block_size = state.config.block_size(g);
    const auto& group = request.groups[g];
    const auto first = std::max(first_position / block_size, group.num_passed);
    const auto end = request.num_computed_tokens / block_size;
    for (auto b = first; b < end; ++b) {
      if (!is_worth_indexing(state, request, g, b)) continue;
      const auto sequence = sequence_of(request, g);
      state.pool.index(group.table[b], group.keys[b], request.epoch, sequence.group);
      state.events.device_stored(sequence, b, b + 1);
    }
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
  if (request == nullptr || (request->attempt != entry.attempt && holds(rule::match_attempts))) return;
  assert(entry.first_position + entry.num_tokens <= request->num_dispatched_tokens);
  count_tokens(state.totals, *request, entry);
  request->num_computed_tokens = entry.first_position + entry.num_tokens;
  std::optional<finish_reason> reason;
  if (sampled != nullptr) {
    --request->num_pending_tokens;
    request->tokens.push_back(*sampled);
    request->unsent.push_back(*sampled);
    ++state.totals.generation_tokens;
    extend_keys(state, *request);
    reason = reason_to_finish(state, *request);
  }
  index_full_blocks(state, *request, entry.first_position);
  store_complete_chunks(state, *request, reason.has_value(), effects.stores);
  if (reason) {
    effects.finished.push_back(end_request(state, entry.request, *reason));
    return;
  }
  release_passed_blocks(state, *request);
  if (sampled != nullptr) effects.with_new_tokens.push_back(entry.request);
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
  std::size_t num_sampled = 0;
  for (const auto& entry : plan.entries)
    commit_entry(state, entry, entry.samples ? &result.sampled[num_sampled++].token : nullptr, effects);
  return effects;
}

std::string find_fault(const scheduler_state& state, const step_plan& plan, const step_result& result) {
  std::size_t num_sampled = 0;
  for (const auto& entry : plan.entries) {
    if (!entry.samples) continue;
    if (num_sampled == result.sampled.size()) break;
    const auto& sampled = result.sampled[num_sampled++];
    const auto name = "request " + std::to_string(entry.request.value) + " attempt " + std::to_string(entry.attempt.value);
    if (sampled.request != entry.request || sampled.attempt != entry.attempt)
      return "the model sampled for request " + std::to_string(sampled.request.value) + " attempt " +
             std::to_string(sampled.attempt.value) + " where " + name + " was asked for";
    if (sampled.token < 0 || static_cast<std::uint32_t>(sampled.token) >= state.config.model.vocab_size)
      return "the model sampled token " + std::to_string(sampled.token) + " for " + name + ", allowed is 0 to " +
             std::to_string(state.config.model.vocab_size - 1);
  }
  const auto num_asked = std::count_if(plan.entries.begin(), plan.entries.end(), [](auto& entry) { return entry.samples; });
  if (static_cast<std::size_t>(num_asked) == result.sampled.size()) return {};
  return "the model sampled " + std::to_string(result.sampled.size()) + " tokens, " + std::to_string(num_asked) +
         " were asked for";
}

}  // namespace sluice::inline v0
