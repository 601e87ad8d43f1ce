// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/apply_plan.hpp>

#include <algorithm>

#include <sluice/actors/rules.hpp>

namespace sluice::inline v0 {

namespace {

void take(scheduler_state& state, block_id block) { state.totals.device_evictions += state.pool.allocate(block); }

transfer_job create_load(scheduler_state& state, const request_record& request, const planned_admission& admission) {
  const auto& load = *admission.load;
  transfer_record record;
  record.id = load.id;
  record.direction = transfer_direction::load;
  record.request = request.params.id;
  record.created_in = state.last_step;
  record.epoch = state.epoch;
  record.waiters = {request.params.id};
  for (const auto& part : load.parts) {
    const auto slots = state.offload_tier()->pin(part.chunks);
    append_copies(record.copies, part.group, part.first_block, part.blocks, slots, state.config.blocks_per_chunk);
    const auto block_size = state.config.block_size(part.group.value);
    for (std::uint32_t i = 0; i < part.blocks.size(); ++i)
      if ((part.first_block + i + 1) * block_size > admission.num_computed_tokens)
        record.private_blocks.push_back(record.blocks.size() + i);
    record.blocks.insert(record.blocks.end(), part.blocks.begin(), part.blocks.end());
    record.keys.insert(record.keys.end(), part.keys.begin(), part.keys.end());
    record.slots.insert(record.slots.end(), slots.begin(), slots.end());
    record.chunks.insert(record.chunks.end(), part.chunks.begin(), part.chunks.end());
    for (auto block : part.blocks) take(state, block);  // the load's own reference
  }
  return state.ledger.add(std::move(record)).job();
}

/// One prefix query per request, at its first admission.
void count_admission(scheduler_state& state, request_record& request, const planned_admission& admission) {
  if (std::exchange(request.is_counted, true)) return;
  state.observer.request_was_queued(request.since_submission.elapsed());
  if (!state.config.enable_prefix_caching) return;
  const auto num_tokens = request.num_tokens();
  const auto num_cached = std::min(admission.num_computed_tokens, request.num_prompt_tokens());
  request.usage.num_device_cached_tokens = std::min(admission.num_device_tokens, num_cached);
  request.usage.num_host_cached_tokens = num_cached - request.usage.num_device_cached_tokens;
  state.totals.device_query_tokens += num_tokens;
  state.totals.device_hit_tokens += request.usage.num_device_cached_tokens;
  if (state.offload_tier() == nullptr) return;
  state.totals.host_query_tokens += num_tokens - request.usage.num_device_cached_tokens;
  state.totals.host_hit_tokens += request.usage.num_host_cached_tokens;
  if (state.config.store_threshold <= 1) return;
  for (std::size_t g = 0; g < request.groups.size(); ++g)
    for (std::uint32_t chunk = 0; (chunk + 1) * state.config.tokens_per_chunk(g) <= num_tokens; ++chunk)
      state.sightings.sight(key_of_chunk(state, request, g, chunk));
}

void fill_table(scheduler_state& state, group_state& group, const planned_table& planned) {
  group.num_passed = planned.num_passed;
  group.table.assign(planned.num_passed, null_block);
  for (auto block : planned.shared) {
    state.pool.share(block);
    group.table.push_back(block);
  }
}

/// Behind what is shared; a window may have passed blocks in between already.
void append_targets(scheduler_state& state, request_record& request, const planned_load& load) {
  const auto factor = state.config.blocks_per_chunk;
  for (const auto& part : load.parts) {
    auto& group = request.groups[part.group.value];
    for (auto block : part.blocks) {
      state.pool.share(block);
      group.table.push_back(block);
    }
    group.first_loaded_chunk = part.first_block / factor;
    group.end_loaded_chunk = static_cast<std::uint32_t>(group.table.size()) / factor;
  }
}

void admit(scheduler_state& state, const planned_admission& admission, std::vector<transfer_job>& jobs) {
  auto& request = *state.requests.find(admission.request);
  for (std::size_t g = 0; g < request.groups.size(); ++g)
    if (g < admission.tables.size()) fill_table(state, request.groups[g], admission.tables[g]);
  if (admission.load) jobs.push_back(create_load(state, request, admission));
  for (auto load : admission.joined_loads)
    if (holds(rule::wait_for_joined_loads)) state.ledger.add_waiter(load, request.params.id);
  if (admission.load) append_targets(state, request, *admission.load);
  if (admission.load && !holds(rule::hold_load_targets))
    for (const auto& part : admission.load->parts)
      for (auto block : part.blocks) state.pool.release(block);
  request.epoch = admission.epoch;
  request.num_computed_tokens = admission.num_computed_tokens;
  request.num_dispatched_tokens = admission.num_computed_tokens;
  state.requests.apply(request,
                       admission.is_loading() ? request_event::admit_loading : request_event::admit_running);
}

void start_entry(scheduler_state& state, const planned_entry& entry) {
  auto& request = *state.requests.find(entry.request);
  if (request.phase == request_phase::loading) state.requests.apply(request, request_event::start);
  for (std::size_t g = 0; g < entry.new_blocks.size(); ++g)
    for (auto block : entry.new_blocks[g]) {
      take(state, block);
      request.groups[g].table.push_back(block);
    }
  request.num_dispatched_tokens += entry.num_tokens;
  request.num_pending_tokens += entry.samples;
}

}  // namespace

void note_waits(scheduler_state& state, const step_plan& plan) {
  for (const auto& wait : plan.waits) {
    auto& request = *state.requests.find(wait.request);
    request.reason = wait.reason;
    switch (wait.reason) {
      case waiting_reason::no_blocks:
        request.available_at_refusal = wait.num_available;
        request.missing_at_refusal = wait.missing;
        break;
      case waiting_reason::queued: request.needs_budget = true; break;
      case waiting_reason::chunk_pending:
        state.chunk_waiters[*wait.awaited].push_back(wait.request);
        state.requests.park(request, wait.reason);
        break;
      case waiting_reason::lookup_pending:
        state.lookup_waiters.push_back(wait.request);
        state.requests.park(request, wait.reason);
        break;
      case waiting_reason::transfers_pending: state.requests.park(request, wait.reason); break;
      case waiting_reason::none:
      case waiting_reason::load_in_flight:
      case waiting_reason::loads_held:
      case waiting_reason::paused: break;
    }
  }
}

std::vector<transfer_job> apply_plan(scheduler_state& state, const step_plan& plan) {
  state.last_step = plan.step;
  for (const auto& victim : plan.preempted)
    preempt(state, *state.requests.find(victim.request), victim.cause, state.config.preemption_offload);
  note_waits(state, plan);
  std::vector<transfer_job> jobs;
  for (const auto& admission : plan.admissions) admit(state, admission, jobs);
  for (const auto& entry : plan.entries) start_entry(state, entry);
  if (auto* tier = state.offload_tier()) tier->touch(plan.touched);
  return jobs;
}

void count_admissions(scheduler_state& state, const step_plan& plan) {
  for (const auto& admission : plan.admissions) count_admission(state, *state.requests.find(admission.request), admission);
}

void withdraw_plan(scheduler_state& state, const step_plan& plan) {
  // Backwards, so that blocks return to where they were in the free list.
  for (auto entry = plan.entries.rbegin(); entry != plan.entries.rend(); ++entry) {
    auto& request = *state.requests.find(entry->request);
    for (std::size_t g = 0; g < entry->new_blocks.size(); ++g)
      for (std::size_t i = 0; i < entry->new_blocks[g].size(); ++i) {
        state.pool.release(request.groups[g].table.back());
        request.groups[g].table.pop_back();
      }
    request.num_dispatched_tokens -= entry->num_tokens;
    request.num_pending_tokens -= entry->samples;
  }
  for (auto admission = plan.admissions.rbegin(); admission != plan.admissions.rend(); ++admission) {
    auto& request = *state.requests.find(admission->request);
    state.ledger.leave_loads(admission->request);
    request.num_computed_tokens = 0;
    release_blocks(state, request);
    state.requests.apply(request, request_event::withdraw);
  }
  for (auto admission = plan.admissions.rbegin(); admission != plan.admissions.rend(); ++admission) {
    if (!admission->load) continue;
    const auto load = state.ledger.remove(admission->load->id);
    if (holds(rule::unpin_withdrawn)) state.offload_tier()->unpin(load->slots);
    if (!holds(rule::hold_load_targets)) continue;
    for (auto block = load->blocks.rbegin(); block != load->blocks.rend(); ++block) state.pool.release(*block);
  }
}

std::vector<pending_transfer> pending_of_preempted(const scheduler_state& state) {
  std::vector<pending_transfer> pending;
  for (auto request : state.unreported_preemptions) {
    for (auto store : state.ledger.stores_of(request))
      if (holds(rule::flush_preempted)) pending.push_back({store, transfer_direction::store, request});
    for (auto load : state.ledger.loads_of(request)) pending.push_back({load, transfer_direction::load, request});
  }
  return pending;
}

step_batch make_batch(scheduler_state& state, const step_plan& plan) {
  step_batch batch{plan.step, {}};
  batch.entries.reserve(plan.entries.size());
  std::uint32_t num_samples = 0;
  for (const auto& planned : plan.entries) {
    auto& request = *state.requests.find(planned.request);
    auto& entry = batch.entries.emplace_back();
    entry.request = planned.request;
    entry.attempt = planned.attempt;
    entry.first_position = planned.first_position;
    const auto end = planned.first_position + planned.num_tokens;
    const auto num_known = std::min(end, request.num_tokens());
    entry.tokens.assign(request.tokens.begin() + planned.first_position, request.tokens.begin() + num_known);
    if (num_known < end) {
      entry.tokens.push_back(pending_token);
      entry.previous_sample = request.sample_index;
    }
    for (const auto& group : request.groups) entry.block_tables.push_back(group.table);
    entry.samples = planned.samples;
    entry.sampling = request.params.sampling;
    if (!planned.samples) continue;
    entry.output_position = end - request.num_prompt_tokens();
    request.sample_index = num_samples++;
  }
  return batch;
}

}  // namespace sluice::inline v0
