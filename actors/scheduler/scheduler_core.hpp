// SPDX-License-Identifier: Apache-2.0
//
// The scheduler without an actor around it: messages in, messages out. Synchronous scheduling: a step is planned when
// the one before has been committed.
//
//            plan is empty                 plan names preempted requests, or re-uses fenced blocks
//   ┌──────┐◀────────────── plan ──────────────────────────▶┌───────────────┐
//   │ idle │                 │                              │ boundary open │── error: withdraw, plan again
//   └──────┘                 │ otherwise                    └───────┬───────┘
//      ▲                     ▼                                      │ cleared
//      │              ┌───────────┐◀────────────────────────────────┘
//      └── result ────│ executing │     commit, apply what arrived, plan again
//                     └───────────┘
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sluice/actors/scheduler/commit_step.hpp>
#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// The answer to the reset command that came with `ticket`.
struct reset_answer {
  std::uint64_t ticket = 0;
  reset_report report;
};

/// The engine found its own state inconsistent.
struct invariant_violation {
  step_id step;
  std::string what;
};

/// In the order of sending.
using outgoing = std::variant<stage_loads, unstage_loads, submit_loads, submit_stores, step_boundary, execute_step,
                              request_tokens, request_finished, reset_answer, invariant_violation>;

/// Owned by the scheduler actor, which calls one function per message received and then sends `take_outgoing`.
class scheduler_core {
 public:
  scheduler_core(scheduler_config config, std::unique_ptr<tier_index> tier);

  // Commands and settlements: applied at once when no step is open, else between steps in arrival order.
  void submit(submit_request message) { receive(std::move(message)); }
  void abort(abort_request message) { receive(message); }
  void finish(finish_request message) { receive(message); }
  void reset(reset_prefix_cache message, std::uint64_t ticket) { receive(reset_input{message, ticket}); }
  void settled(transfers_settled message) { receive(std::move(message)); }

  void enqueued(step_enqueued message);
  void result(const step_result& message);
  void failed(const step_failed& message);

  void cleared(const boundary_cleared& message);
  /// `code` is older_load_pending, flush_timed_out or transfer_actor_lost; `ids` are the transfers it names. After
  /// transfer_actor_lost nothing is planned before the next input or `plan_again`, which the caller owes.
  void boundary_failed(step_id step, errc code, std::vector<transfer_id> ids);

  /// Goes on after a boundary lost an actor.
  void plan_again();

  std::vector<outgoing> take_outgoing();

  /// Nothing is planned, running, waiting or in flight.
  bool is_idle() const;
  engine_snapshot snapshot() const;
  /// Cheap: does not grow with requests or blocks.
  engine_numbers numbers() const;
  /// Every violated invariant, in words. Meaningful while no boundary is open.
  std::vector<std::string> check() const { return check_integrity(state_); }
  bool is_boundary_open() const { return open_ && open_->phase == open_phase::boundary; }

 private:
  struct reset_input {
    reset_prefix_cache command;
    std::uint64_t ticket;
  };
  using input = std::variant<submit_request, abort_request, finish_request, reset_input, transfers_settled>;

  enum class open_phase : std::uint8_t { boundary, executing };
  struct open_step {
    step_plan plan;
    std::vector<transfer_job> loads;
    open_phase phase = open_phase::boundary;
  };

  void receive(input message);
  void apply_inputs();
  void apply(submit_request message);
  void apply(const abort_request& message);
  void apply(const finish_request& message);
  void apply(const reset_input& message);
  void apply(const transfers_settled& message);

  void run_steps();
  void open_boundary();
  void dispatch(bool are_loads_staged);
  void send_loads(submit_loads message);
  void commit(const commit_effects& effects);
  void send_tokens();
  void end(request_id id, finish_reason reason, errc code = errc::none, std::string message = {});

  void withdraw();
  std::vector<request_id> preempted_waiters_of(const std::vector<transfer_id>& loads) const;
  void fail_for_older_load(request_id id);
  void give_up_unsettled(std::vector<transfer_id> stores);
  void report(std::string what);
  template <class Message>
  void send(Message message) { outgoing_.emplace_back(std::move(message)); }

  scheduler_state state_;
  std::optional<open_step> open_;
  std::deque<input> inputs_;
  std::vector<outgoing> outgoing_;
  std::vector<request_id> with_new_tokens_;   // committed, not sent to the request actors yet
  std::vector<request_finished> finished_;    // the same
  step_id last_enqueued_step_;
  std::vector<submit_loads> held_loads_;      // wait for the enqueueing of their after_step
};

}  // namespace sluice::inline v0
