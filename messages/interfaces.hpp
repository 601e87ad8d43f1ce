// SPDX-License-Identifier: Apache-2.0
//
// Every actor's interface on one page. `caf::result<void>` messages are never answered.
#pragma once

#include <vector>

#include <sluice/messages/inspect.hpp>

namespace sluice::inline v0 {

/// Owns the client's sink of one request; assembles text, finds stop strings. Lives until the terminal event.
using request_actor = compat::typed_actor<  //
    caf::result<void>(request_tokens),      // from the scheduler, at most one per step
    caf::result<void>(request_finished),    // from the scheduler, or the supervisor when the engine failed; the last
    caf::result<void>(client_gone)>;        // from the facade

/// Owns the physical state of loads between stage and settle.
using load_actor = compat::typed_actor<             //
    caf::result<void>(stage_loads),                 // boundary opens
    caf::result<void>(unstage_loads),               // the plan was withdrawn
    caf::result<step_load_ids>(current_step_loads), // from the preemption handler; ids staged for that step, or none
    caf::result<void>(submit_loads),                // dispatch
    caf::result<void>(adopt_transfers),             // the first message to a successor
    caf::result<void>(copies_ended)>;               // from its stream's thread

/// Owns the physical state of stores, and flushes in waiting.
using store_actor = compat::typed_actor<         //
    caf::result<void>(submit_stores),            // commit, and before a boundary
    caf::result<void>(adopt_transfers),          // the first message to a successor
    caf::result<stores_flushed>(flush_stores),   // from the preemption handler; answered when all have settled
    caf::result<void>(copies_ended)>;            // from its stream's thread

/// The load or store actor ended. Its successor has the same stream; what the predecessor did not handle is lost.
struct load_actor_replaced {
  load_actor successor;
};
SLUICE_INSPECT(load_actor_replaced, successor);
struct store_actor_replaced {
  store_actor successor;
};
SLUICE_INSPECT(store_actor_replaced, successor);

/// Owns the boundary in progress, nothing else.
using preemption_handler = compat::typed_actor<     //
    caf::result<boundary_cleared>(step_boundary),   // or older_load_pending, flush_timed_out, transfer_actor_lost;
                                                    // the error's context is std::vector<transfer_id>
    caf::result<void>(load_actor_replaced),         // from the scheduler: later boundaries are about the successor
    caf::result<void>(store_actor_replaced)>;       // the same; a flush in waiting is lost

/// Runs the model.
using executor_actor = compat::typed_actor<  //
    caf::result<void>(execute_step),         // answered by step_enqueued, then step_result or step_failed
    caf::result<memory_changed>(change_memory),  // from the scheduler, with nothing in flight
    caf::result<void>(compute_reached)>;     // from the compute stream's thread

/// Where the scheduler sends. Told once, before the first request.
struct connect_engine {
  load_actor loads;
  store_actor stores;
  preemption_handler handler;
  executor_actor executor;
};
SLUICE_INSPECT(connect_engine, loads, stores, handler, executor);

/// Owns queues, block tables, the device block pool, the prefix index, the tier index and the transfer ledger.
using scheduler_actor = compat::typed_actor<        //
    caf::result<void>(connect_engine),              // from the runtime
    caf::result<void>(load_actor_replaced),         // from the supervisor
    caf::result<void>(store_actor_replaced),        // from the supervisor
    caf::result<void>(submit_request),              // from a request actor, which gets the request's messages
    caf::result<void>(abort_request),               // from a request actor
    caf::result<void>(finish_request),              // from a request actor
    caf::result<reset_report>(reset_prefix_cache),  // applied between two steps
    caf::result<control_report>(pause_engine),      // answered when everything is at rest
    caf::result<control_report>(resume_engine),     // applied between two steps
    caf::result<control_report>(sleep_engine),      // answered when memory is given back
    caf::result<control_report>(wake_engine),       // answered when memory is back
    caf::result<engine_snapshot>(snapshot_query),   // at once
    caf::result<integrity_report>(integrity_query), // at once
    caf::result<void>(step_enqueued),               // from the executor
    caf::result<void>(step_result),                 // from the executor
    caf::result<void>(step_failed),                 // from the executor
    caf::result<void>(transfers_settled),           // from the load and the store actor
    caf::result<void>(lookups_answered),            // from a tier
    caf::result<void>(check_transfers),             // from itself
    caf::result<void>(wait_expired),                // from itself
    caf::result<void>(control_expired),             // from itself
    caf::result<void>(plan_again)>;                 // from itself

/// Watches the five actors above. A load or store actor that ends gets a successor; the end of any other is the end of
/// the engine.
using supervisor_actor = compat::typed_actor<  //
    caf::result<void>(stop_watching)>;         // from the runtime: ends them all, and itself

}  // namespace sluice::inline v0

SLUICE_BEGIN_TYPE_IDS(sluice, SLUICE_FIRST_TYPE_ID)
SLUICE_TYPE_ID(sluice, sluice::errc)
SLUICE_TYPE_ID(sluice, std::vector<sluice::transfer_id>)
SLUICE_TYPE_ID(sluice, sluice::reset_report)
SLUICE_TYPE_ID(sluice, sluice::control_report)
SLUICE_TYPE_ID(sluice, sluice::engine_snapshot)
SLUICE_TYPE_ID(sluice, sluice::integrity_report)
SLUICE_TYPE_ID(sluice, sluice::connect_engine)
SLUICE_TYPE_ID(sluice, sluice::load_actor_replaced)
SLUICE_TYPE_ID(sluice, sluice::store_actor_replaced)
SLUICE_TYPE_ID(sluice, sluice::adopt_transfers)
SLUICE_TYPE_ID(sluice, sluice::submit_request)
SLUICE_TYPE_ID(sluice, sluice::abort_request)
SLUICE_TYPE_ID(sluice, sluice::finish_request)
SLUICE_TYPE_ID(sluice, sluice::reset_prefix_cache)
SLUICE_TYPE_ID(sluice, sluice::snapshot_query)
SLUICE_TYPE_ID(sluice, sluice::integrity_query)
SLUICE_TYPE_ID(sluice, sluice::stage_loads)
SLUICE_TYPE_ID(sluice, sluice::unstage_loads)
SLUICE_TYPE_ID(sluice, sluice::step_boundary)
SLUICE_TYPE_ID(sluice, sluice::boundary_cleared)
SLUICE_TYPE_ID(sluice, sluice::current_step_loads)
SLUICE_TYPE_ID(sluice, sluice::step_load_ids)
SLUICE_TYPE_ID(sluice, sluice::flush_stores)
SLUICE_TYPE_ID(sluice, sluice::stores_flushed)
SLUICE_TYPE_ID(sluice, sluice::plan_again)
SLUICE_TYPE_ID(sluice, sluice::pause_engine)
SLUICE_TYPE_ID(sluice, sluice::resume_engine)
SLUICE_TYPE_ID(sluice, sluice::sleep_engine)
SLUICE_TYPE_ID(sluice, sluice::wake_engine)
SLUICE_TYPE_ID(sluice, sluice::lookups_answered)
SLUICE_TYPE_ID(sluice, sluice::check_transfers)
SLUICE_TYPE_ID(sluice, sluice::wait_expired)
SLUICE_TYPE_ID(sluice, sluice::control_expired)
SLUICE_TYPE_ID(sluice, sluice::change_memory)
SLUICE_TYPE_ID(sluice, sluice::memory_changed)
SLUICE_TYPE_ID(sluice, sluice::execute_step)
SLUICE_TYPE_ID(sluice, sluice::submit_loads)
SLUICE_TYPE_ID(sluice, sluice::submit_stores)
SLUICE_TYPE_ID(sluice, sluice::step_enqueued)
SLUICE_TYPE_ID(sluice, sluice::step_result)
SLUICE_TYPE_ID(sluice, sluice::step_failed)
SLUICE_TYPE_ID(sluice, sluice::transfers_settled)
SLUICE_TYPE_ID(sluice, sluice::request_tokens)
SLUICE_TYPE_ID(sluice, sluice::request_finished)
SLUICE_TYPE_ID(sluice, sluice::client_gone)
SLUICE_TYPE_ID(sluice, sluice::stop_watching)
SLUICE_TYPE_ID(sluice, sluice::copies_ended)
SLUICE_TYPE_ID(sluice, sluice::compute_reached)
SLUICE_END_TYPE_IDS(sluice)
SLUICE_ERROR_CODE_ENUM(sluice::errc, "sluice")
