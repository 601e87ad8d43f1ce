// SPDX-License-Identifier: Apache-2.0
//
// Every message between actors, in the order in which a step meets them. Copyable values, free of CAF; how they
// are serialised stands in inspect.hpp, who answers which one in interfaces.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/messages/errc.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

// -- commands: facade and request actors to the scheduler, applied between steps in arrival order --------------

/// Queue a request. The sender becomes the receiver of its `request_update`s.
struct submit_request {
  request_params params;
};

/// End a request with reason abort. Unknown and ended ids are ignored.
struct abort_request {
  request_id request;
};

/// The request actor ends its own request (stop string): tokens beyond the first `num_output_tokens` were
/// overshoot and do not count.
struct finish_request {
  request_id request;
  finish_reason reason = finish_reason::stop;
  std::uint32_t num_output_tokens = 0;
};

/// Answered with a `reset_report`. With a `wait` above zero the device's reset waits that long for the loads that hold
/// blocks, and nothing new is loaded meanwhile.
struct reset_prefix_cache {
  bool reset_running_requests = false;
  bool reset_external = false;  ///< every tier too
  bool reset_device = true;
  std::chrono::nanoseconds wait{0};
};

/// Stop admitting requests; answered with a `control_report` once the steps in flight are committed, all loads have
/// settled and the named caches are cleared, or after `timeout`. A pause holds no later command.
struct pause_engine {
  pause_mode mode = pause_mode::abort;
  bool clear_cache = true;  ///< the device's
  bool clear_tiers = true;
  std::chrono::nanoseconds timeout = std::chrono::seconds{60};
};

/// Go on. Cancels an unfinished pause or sleep; harmless while running. Answered at once with a `control_report`.
struct resume_engine {};

/// Pause, clear the device's cache and give device memory back once no transfer touches it. Answered with a
/// `control_report`. If a cache cannot be reset nothing is given back.
struct sleep_engine {
  std::uint32_t level = 1;  ///< 1: the KV cache, 2: the model's weights too
  pause_mode mode = pause_mode::abort;
  bool clear_tiers = true;
  std::chrono::nanoseconds timeout = std::chrono::seconds{60};
};

/// Take memory back; when all of it is back the engine goes on. Answered with a `control_report`.
struct wake_engine {
  bool weights = true;
  bool kv_cache = true;
};

/// Answered at once with an `engine_snapshot`.
struct snapshot_query {};

/// Answered at once with an `integrity_report`.
struct integrity_query {};

/// Every violated invariant, in words.
struct integrity_report {
  std::vector<std::string> faults;
};

// -- boundary ---------------------------------------------------------------------------------------------------

/// Loads of a plan whose boundary is open: known to the load actor, not yet submitted.
struct stage_loads {
  step_id step;
  std::vector<transfer_job> loads;
};

/// The plan of `step` was withdrawn: forget what was staged for it.
struct unstage_loads {
  step_id step;
};

/// Scheduler to preemption handler: may step `step` be dispatched? `pending` has one entry per unsettled store
/// of a preempted request and one per present waiter of a load among them; `reused` are the stores that read a
/// block which the plan re-allocates for writing. Answered with `boundary_cleared`, or with the error
/// older_load_pending, flush_timed_out or transfer_actor_lost that names transfer ids.
struct step_boundary {
  step_id step;
  std::vector<pending_transfer> pending;
  std::vector<transfer_id> reused;
};

/// The step may be dispatched. For the counters: how many stores the flush named and how many loads of the same
/// step were subtracted.
struct boundary_cleared {
  step_id step;
  std::uint32_t num_flushed_stores = 0;
  std::uint32_t num_excluded_loads = 0;
};

/// Preemption handler to load actor: which loads were created in this step? Answered with `step_load_ids`.
struct current_step_loads {
  step_id step;
};

struct step_load_ids {
  step_id step;
  std::vector<transfer_id> ids;
};

/// Preemption handler to store actor: answer once all of `ids` have settled. An id not above the highest
/// submitted one that the store actor does not hold has settled.
struct flush_stores {
  step_id step;
  std::vector<transfer_id> ids;
};

struct stores_flushed {
  step_id step;
};

/// Scheduler to itself, several times in a transfer's timeout while any is in flight: those that have had their time
/// are given up.
struct check_transfers {};

/// Scheduler to itself: the request has waited long enough for chunks that are pending or not looked up yet.
struct wait_expired {
  request_id request;
  attempt_id attempt;
};

/// Scheduler to itself: the reset, pause or sleep with this ticket has had its time.
struct control_expired {
  std::uint64_t ticket = 0;
};

/// From a tier: answers to lookups have come in.
struct lookups_answered {};

/// Scheduler to itself, a while after a boundary ended with transfer_actor_lost: the actor may have been slow only.
struct plan_again {};

// -- dispatch ---------------------------------------------------------------------------------------------------

struct execute_step {
  step_batch batch;
};

/// After a stage of the same step `loads` is empty and the staged ones go. A load's copies wait for the event of
/// `after_step`, the last dispatched step that may touch their targets (0: none).
struct submit_loads {
  step_id step;
  std::vector<transfer_job> loads;
  step_id after_step;
};

/// The copies wait for the event of `after_step`, which wrote the blocks.
struct submit_stores {
  step_id step;
  std::vector<transfer_job> stores;
  step_id after_step;
};

// -- results ----------------------------------------------------------------------------------------------------

/// The step's work is on the compute stream and its event is recorded.
struct step_enqueued {
  step_id step;
};

struct step_result {
  step_id step;
  std::vector<sampled_token> sampled;
};

/// Scheduler to executor, with nothing on the compute stream and no transfer in flight: give memory back, contents
/// included, or take it back. Answered with `memory_changed`.
struct change_memory {
  bool is_release = false;
  bool weights = false;
  bool kv_cache = false;
};

struct memory_changed {
  errc code = errc::none;
  std::string message;
};

/// The model or the device failed in this step; nothing of it may be used.
struct step_failed {
  step_id step;
  errc code = errc::model_failed;
  std::string message;
};

/// Physical ends, batched: one message per wake-up of the load or store actor.
struct transfers_settled {
  transfer_direction direction = transfer_direction::load;
  std::vector<transfer_outcome> outcomes;
};

// -- to request actors ------------------------------------------------------------------------------------------

/// New tokens of one request, at most one message per request and step.
struct request_tokens {
  request_id request;
  std::vector<token_id> tokens;
};

/// The end of a request, exactly once. Tokens not yet sent come along.
struct request_finished {
  request_id request;
  std::vector<token_id> tokens;
  finish_reason reason = finish_reason::stop;
  errc code = errc::none;
  std::string message;
  request_usage usage;
};

/// Facade to request actor: the client is gone. Becomes an `abort_request`.
struct client_gone {};

// -- supervision ------------------------------------------------------------------------------------------------

/// The runtime ends the engine's actors itself from now on: their ends are no failures.
struct stop_watching {};

/// Scheduler to the successor of a load or store actor that ended, before anything else: transfers that may be on the
/// stream. They settle, as failed and with nothing known of their bytes, once the stream has passed all it held.
struct adopt_transfers {
  std::vector<transfer_id> ids;
  transfer_id highest;  ///< transfers up to this one that are not named have settled
};

// -- from device threads to the actor that enqueued the work ----------------------------------------------------

/// One or more transfers ended; take them from the shared completion list.
struct copies_ended {};

/// The compute stream passed the end of `step`.
struct compute_reached {
  step_id step;
  std::string failure;  ///< empty when all went well
};

}  // namespace sluice::inline v0
