// SPDX-License-Identifier: Apache-2.0
//
// How every value type and message is serialised: one field list each.
#pragma once

#include <sluice/messages/caf_compat.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

SLUICE_INSPECT_ENUM(errc);
SLUICE_INSPECT_ENUM(transfer_direction);
SLUICE_INSPECT_ENUM(transfer_result);
SLUICE_INSPECT_ENUM(request_phase);
SLUICE_INSPECT_ENUM(waiting_reason);
SLUICE_INSPECT_ENUM(finish_reason);
SLUICE_INSPECT_ENUM(pause_mode);
SLUICE_INSPECT_ENUM(control_state);
SLUICE_INSPECT_ENUM(control_outcome);

SLUICE_INSPECT(block_copy, slot, first_block_in_chunk, block, num_blocks, group);
SLUICE_INSPECT(transfer_job, id, copies);
SLUICE_INSPECT(transfer_outcome, id, result, num_good_copies, duration, was_refused);
SLUICE_INSPECT(pending_transfer, id, direction, request);
SLUICE_INSPECT(sampling_params, temperature, seed);
SLUICE_INSPECT(request_params, id, prompt, max_tokens, sampling, ignore_eos, cache_salt, priority, max_offload_tokens,
               max_load_tokens, reads_prefix_cache);
SLUICE_INSPECT(request_usage, num_prompt_tokens, num_output_tokens, num_device_cached_tokens, num_host_cached_tokens,
               num_preemptions);
SLUICE_INSPECT(batch_entry, request, attempt, first_position, tokens, previous_sample, block_tables, samples,
               output_position, sampling);
SLUICE_INSPECT(step_batch, step, entries);
SLUICE_INSPECT(sampled_token, request, attempt, token);
SLUICE_INSPECT(cache_reset_report, cache, reset, num_dropped, num_dropped_bytes, held_by_loads,
               held_by_running_requests, num_stores_in_flight, is_unsupported);
SLUICE_INSPECT(reset_report, success, caches);
SLUICE_INSPECT(control_report, outcome, caches, message);
SLUICE_INSPECT(request_snapshot, id, phase, reason, attempt, num_tokens, num_computed_tokens, num_blocks, loads,
               num_unsettled_stores);
SLUICE_INSPECT(transfer_snapshot, id, direction, request, created_in, num_blocks, num_waiters, is_given_up);
SLUICE_INSPECT(block_counts, free, cached, held, quarantined);
SLUICE_INSPECT(slot_counts, free, pending, ready, draining, pinned);
SLUICE_INSPECT(engine_totals, steps, boundaries, withdrawn_plans, flushed_stores, boundary_excluded_loads,
               preemptions_capacity, preemptions_priority, preemptions_reset, preemptions_pause, prompt_tokens, generation_tokens, recomputed_tokens,
               scheduled_tokens, device_query_tokens, device_hit_tokens, host_query_tokens, host_hit_tokens,
               finished_stop, finished_length, finished_abort, finished_error, loads_ok, loads_failed, loads_stale,
               loads_timed_out, stores_ok, stores_failed, stores_stale, stores_timed_out, loaded_bytes, stored_bytes,
               device_evictions, host_evictions, refused_offers, resets_device_success, resets_device_refused,
               resets_tiers_success, resets_tiers_refused, resets_all_success, resets_all_refused, load_actor_restarts, store_actor_restarts,
               invariant_violations);
SLUICE_INSPECT(engine_snapshot, last_step, is_idle, is_boundary_open, control, requests, transfers, blocks, slots, totals);

SLUICE_INSPECT(submit_request, params);
SLUICE_INSPECT(abort_request, request);
SLUICE_INSPECT(finish_request, request, reason, num_output_tokens);
SLUICE_INSPECT(reset_prefix_cache, reset_running_requests, reset_external, reset_device, wait);
SLUICE_INSPECT(pause_engine, mode, clear_cache, clear_tiers, timeout);
SLUICE_INSPECT(resume_engine);
SLUICE_INSPECT(sleep_engine, level, mode, clear_tiers, timeout);
SLUICE_INSPECT(wake_engine, weights, kv_cache);
SLUICE_INSPECT(adopt_transfers, ids, highest);
SLUICE_INSPECT(snapshot_query);
SLUICE_INSPECT(integrity_query);
SLUICE_INSPECT(integrity_report, faults);
SLUICE_INSPECT(stage_loads, step, loads);
SLUICE_INSPECT(unstage_loads, step);
SLUICE_INSPECT(step_boundary, step, pending, reused);
SLUICE_INSPECT(boundary_cleared, step, num_flushed_stores, num_excluded_loads);
SLUICE_INSPECT(current_step_loads, step);
SLUICE_INSPECT(step_load_ids, step, ids);
SLUICE_INSPECT(flush_stores, step, ids);
SLUICE_INSPECT(stores_flushed, step);
SLUICE_INSPECT(check_transfers);
SLUICE_INSPECT(wait_expired, request, attempt);
SLUICE_INSPECT(control_expired, ticket);
SLUICE_INSPECT(lookups_answered);
SLUICE_INSPECT(change_memory, is_release, weights, kv_cache);
SLUICE_INSPECT(memory_changed, code, message);
SLUICE_INSPECT(plan_again);
SLUICE_INSPECT(execute_step, batch);
SLUICE_INSPECT(submit_loads, step, loads, after_step);
SLUICE_INSPECT(submit_stores, step, stores, after_step);
SLUICE_INSPECT(step_enqueued, step);
SLUICE_INSPECT(step_result, step, sampled);
SLUICE_INSPECT(step_failed, step, code, message);
SLUICE_INSPECT(transfers_settled, direction, outcomes);
SLUICE_INSPECT(request_tokens, request, tokens);
SLUICE_INSPECT(request_finished, request, tokens, reason, code, message, usage);
SLUICE_INSPECT(client_gone);
SLUICE_INSPECT(stop_watching);
SLUICE_INSPECT(copies_ended);
SLUICE_INSPECT(compute_reached, step, failure);

}  // namespace sluice::inline v0
