// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/apply_plan.hpp>

#include <algorithm>
#include <cassert>

namespace sluice::inline v0 {

namespace {

void take(scheduler_state& state, block_id block) { state.totals.device_evictions += state.pool.allocate(block); }

transfer_job create_load(scheduler_state& state, const request_record& request, const planned_load& load) {
  transfer_record record;
  record.id = load.id;
  record.direction = transfer_direction::load;
  record.request = request.params.id;
  record.group = load.group;
  record.created_in = state.last_step;
  record.epoch = state.epoch;
  record.slots = state.offload_tier()->pin(load.chunks);
  record.copies = make_copies(load.first_block, load.blocks, record.slots, state.config.blocks_per_chunk);
  record.blocks = load.blocks;
  record.keys = load.keys;
  record.recomputes_last_block = load.recomputes_last_block;
  record.waiters = {request.params.id};
  for (auto block : load.blocks) take(state, block);  // the load's own reference
  return state.ledger.add(std::move(record)).job();
}

/// One prefix query per request, at its first admission.
void count_query(scheduler_state& state, request_record& request, const planned_admission& admission) {
  if (request.is_counted || !state.config.enable_prefix_caching) return;
  request.is_counted = true;
  const auto num_tokens = request.num_tokens();
  const auto block_size = state.config.block_size(0);
  const auto num_on_device = static_cast<std::uint32_t>(admission.device_blocks.size()) * block_size;
  const auto num_cached = std::min(admission.num_computed_tokens, request.num_prompt_tokens());
  request.usage.num_device_cached_tokens = std::min(num_on_device, num_cached);
  request.usage.num_host_cached_tokens = num_cached - request.usage.num_device_cached_tokens;
  state.totals.device_query_tokens += num_tokens;
  state.totals.device_hit_tokens += request.usage.num_device_cached_tokens;
  if (state.offload_tier() == nullptr) return;
  state.totals.host_query_tokens += num_tokens - request.usage.num_device_cached_tokens;
  state.totals.host_hit_tokens += request.usage.num_host_cached_tokens;
}

void admit(scheduler_state& state, const planned_admission& admission, std::vector<transfer_job>& jobs) {
  auto& request = *state.requests.find(admission.request);
  auto& table = request.groups[0].table;
  for (auto block : admission.device_blocks) {
    state.pool.share(block);
    table.push_back(block);
  }
  if (admission.load) jobs.push_back(create_load(state, request, *admission.load));
  for (auto block : admission.joined_blocks) {
    state.pool.share(block);
    table.push_back(block);
  }
  for (auto load : admission.joined_loads) state.ledger.add_waiter(load, request.params.id);
  if (admission.load)
    for (auto block : admission.load->blocks) {
      state.pool.share(block);
      table.push_back(block);
    }
  request.epoch = admission.epoch;
  request.num_computed_tokens = admission.num_computed_tokens;
  request.num_dispatched_tokens = admission.num_computed_tokens;
  state.requests.apply(request,
                       admission.is_loading() ? request_event::admit_loading : request_event::admit_running);
}

void extend_table(scheduler_state& state, const planned_entry& entry) {
  auto& request = *state.requests.find(entry.request);
  if (request.phase == request_phase::loading) state.requests.apply(request, request_event::start);
  for (std::size_t g = 0; g < entry.new_blocks.size(); ++g)
    for (auto block : entry.new_blocks[g]) {
      take(state, block);
      request.groups[g].table.push_back(block);
    }
  request.num_dispatched_tokens += entry.num_tokens;
}

}  // namespace

std::vector<transfer_job> apply_plan(scheduler_state& state, const step_plan& plan) {
  state.last_step = plan.step;
  for (auto id : plan.preempted) preempt(state, *state.requests.find(id), preemption_cause::capacity);
  for (const auto& wait : plan.waits) state.requests.find(wait.request)->reason = wait.reason;
  std::vector<transfer_job> jobs;
  for (const auto& admission : plan.admissions) admit(state, admission, jobs);
  for (const auto& entry : plan.entries) extend_table(state, entry);
  if (auto* tier = state.offload_tier()) tier->touch(plan.touched);
  return jobs;
}

void count_queries(scheduler_state& state, const step_plan& plan) {
  for (const auto& admission : plan.admissions) count_query(state, *state.requests.find(admission.request), admission);
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
    state.offload_tier()->unpin(load->slots);
    for (auto block = load->blocks.rbegin(); block != load->blocks.rend(); ++block) state.pool.release(*block);
  }
}

std::vector<pending_transfer> pending_of_preempted(const scheduler_state& state) {
  std::vector<pending_transfer> pending;
  for (auto request : state.unreported_preemptions) {
    for (auto store : state.ledger.stores_of(request))
      pending.push_back({store, transfer_direction::store, request});
    for (auto load : state.ledger.loads_of(request)) pending.push_back({load, transfer_direction::load, request});
  }
  return pending;
}

step_batch make_batch(const scheduler_state& state, const step_plan& plan) {
  step_batch batch{plan.step, {}};
  batch.entries.reserve(plan.entries.size());
  for (const auto& planned : plan.entries) {
    const auto& request = *state.requests.find(planned.request);
    auto& entry = batch.entries.emplace_back();
    entry.request = planned.request;
    entry.attempt = planned.attempt;
    entry.first_position = planned.first_position;
    const auto first = request.tokens.begin() + planned.first_position;
    entry.tokens.assign(first, first + planned.num_tokens);
    for (const auto& group : request.groups) entry.block_tables.push_back(group.table);
    entry.samples = planned.samples;
    entry.output_position = planned.samples ? request.num_output_tokens() : 0;
    entry.sampling = request.params.sampling;
  }
  return batch;
}

}  // namespace sluice::inline v0
