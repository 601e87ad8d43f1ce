// SPDX-License-Identifier: Apache-2.0
//
// The scheduler without an actor around it: messages in, messages out.
//
//                                 plan names preempted requests, or re-uses fenced blocks
//   ┌──────────────┐──────────────────────────▶┌───────────────┐
//   │  may plan    │                           │ boundary open │── error: withdraw ──▶ may plan
//   └──┬────────▲──┘                           └───────┬───────┘
//      │ plan   │ result: commit                       │ cleared
//      ▼        │                                      ▼
//   ┌───────────┴─────────────────────────────────────────────┐
//   │ dispatched: one step, or two with asynchronous scheduling │
//   └───────────────────────────────────────────────────────────┘
//
// Synchronous: a step is planned when the one before has been committed. Asynchronous: when the one before has been
// dispatched, with pending tokens for those that it will sample. While a boundary is open only its answer and
// `step_enqueued` are acted on.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sluice/actors/scheduler/commit_step.hpp>
#include <sluice/actors/scheduler/engine_control.hpp>
#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// The answer to the reset command that came with `ticket`.
struct reset_answer {
  std::uint64_t ticket = 0;
  reset_report report;
};

/// The answer to the pause, resume, sleep or wake command that came with `ticket`.
struct control_answer {
  std::uint64_t ticket = 0;
  control_report report;
};

/// The message is to come back after that time.
template <class Message>
struct timer {
  Message message;
  std::chrono::nanoseconds after{0};
};

/// To the successor of the actor that drove the copies in that direction.
struct adoption {
  transfer_direction direction = transfer_direction::load;
  adopt_transfers transfers;
};

/// The engine found its own state inconsistent.
struct invariant_violation {
  step_id step;
  std::string what;
};

/// In the order of sending.
using outgoing = std::variant<stage_loads, unstage_loads, submit_loads, submit_stores, adoption, step_boundary, execute_step,
                              request_tokens, request_finished, reset_answer, control_answer, change_memory,
                              timer<check_transfers>, timer<wait_expired>, timer<control_expired>, invariant_violation>;

/// Owned by the scheduler actor, which calls one function per message received and then sends `take_outgoing`.
class scheduler_core {
 public:
  /// `tier` may be null: no offloading. The observer outlives the core.
  scheduler_core(scheduler_config config, std::unique_ptr<tier_index> tier, engine_observer& observer = nobody());

  // Commands and settlements: applied between steps in arrival order, at once where a step may be planned. Tickets
  // are the caller's, never 0 and never used again.
  void submit(submit_request message) { receive(std::move(message)); }
  void abort(abort_request message) { receive(message); }
  void finish(finish_request message) { receive(message); }
  void reset(reset_prefix_cache message, std::uint64_t ticket) { receive(ticketed<reset_prefix_cache>{message, ticket}); }
  void pause(pause_engine message, std::uint64_t ticket) { receive(ticketed<pause_engine>{message, ticket}); }
  void resume(resume_engine message, std::uint64_t ticket) { receive(ticketed<resume_engine>{message, ticket}); }
  void sleep(sleep_engine message, std::uint64_t ticket) { receive(ticketed<sleep_engine>{message, ticket}); }
  void wake(wake_engine message, std::uint64_t ticket) { receive(ticketed<wake_engine>{message, ticket}); }
  void memory_has_changed(memory_changed message) { receive(std::move(message)); }
  void settled(transfers_settled message) { receive(std::move(message)); }
  void lookups_have_answers(lookups_answered message) { receive(message); }

  // Timers that have run out.
  void expired(check_transfers message) { receive(message); }
  void expired(wait_expired message) { receive(message); }
  void expired(control_expired message) { receive(message); }

  void enqueued(step_enqueued message);
  void result(step_result message);
  void failed(step_failed message);

  void cleared(const boundary_cleared& message);
  /// `code` is older_load_pending, flush_timed_out or transfer_actor_lost; `ids` are the transfers it names. After
  /// transfer_actor_lost nothing is planned before the next input or `plan_again`, which the caller owes.
  void boundary_failed(step_id step, errc code, std::vector<transfer_id> ids);

  /// The actor that drove the copies in that direction ended; everything goes to its successor from now on. Acted on
  /// at once, also while a boundary is open: transfers that may be on the stream are adopted, loads that were staged
  /// are submitted wholly when the boundary is cleared.
  void transfer_actor_replaced(transfer_direction direction);

  /// Goes on after a boundary lost an actor.
  void plan_again();

  std::vector<outgoing> take_outgoing();

  /// What became findable or ceased to be, in which cache, since the last call; nothing unless the configuration asks
  /// for it.
  std::vector<kv_event> take_events() { return state_.events.take(); }

  /// Nothing is planned, running, waiting or in flight.
  bool is_idle() const;
  engine_snapshot snapshot() const;
  /// Cheap: does not grow with requests or blocks.
  engine_numbers numbers() const;
  /// Every violated invariant, in words. Meaningful while no boundary is open.
  std::vector<std::string> check() const { return check_integrity(state_); }
  bool is_boundary_open() const { return boundary_.has_value(); }

 private:
  template <class Command>
  struct ticketed {
    Command command;
    std::uint64_t ticket = 0;
  };
  using input = std::variant<submit_request, abort_request, finish_request, ticketed<reset_prefix_cache>,
                             ticketed<pause_engine>, ticketed<resume_engine>, ticketed<sleep_engine>,
                             ticketed<wake_engine>, memory_changed, transfers_settled, lookups_answered,
                             check_transfers, wait_expired, control_expired>;

  /// An applied plan that is not dispatched yet.
  struct open_step {
    step_plan plan;
    std::vector<transfer_job> loads;
    bool are_loads_staged = false;
    stopwatch since_opening{};  ///< of its boundary
  };
  struct executing_step {
    step_plan plan;
    stopwatch since_dispatch{};
  };
  /// Which transfers there were at the last checks: those of the oldest have had their time.
  struct transfer_watch {
    static constexpr std::size_t checks_per_timeout = 8;
    bool is_armed = false;
    std::deque<transfer_id> newest_at_check;
  };
  struct waiting_reset {
    reset_prefix_cache command;
    std::uint64_t ticket = 0;
  };

  // scheduler_inputs.cpp
  void receive(input message);
  void apply_inputs();
  void apply(submit_request message);
  void apply(const abort_request& message);
  void apply(const finish_request& message);
  void apply(const ticketed<reset_prefix_cache>& message);
  void apply(const ticketed<pause_engine>& message);
  void apply(const ticketed<resume_engine>& message);
  void apply(const ticketed<sleep_engine>& message);
  void apply(const ticketed<wake_engine>& message);
  void apply(const memory_changed& message);
  void apply(const transfers_settled& message);
  void apply(const lookups_answered& message);
  void apply(const check_transfers& message);
  void apply(const wait_expired& message);
  void apply(const control_expired& message);
  void run_reset(const waiting_reset& reset);
  void run_waiting_resets();
  void end_all();
  void end(request_id id, finish_reason reason, errc code = errc::none, std::string message = {});

  // scheduler_core.cpp
  void run();
  bool open();
  void open_boundary(open_step step);
  void dispatch(open_step step);
  void commit_results();
  void commit(const step_result& result);
  void commit(const step_failed& failure);
  template <class Message>
  void keep_result(Message message);
  std::optional<step_plan> take_executing(step_id step);
  void send_loads(submit_loads message);
  void send_stores(step_id step, std::vector<transfer_job> stores, step_id after_step);
  void send_victim_stores();
  void watch_transfers();
  void send_tokens();
  void start_wait_timers(const step_plan& plan);

  // scheduler_boundary.cpp
  open_step close_boundary();
  open_step withdraw();
  std::vector<request_id> preempted_waiters_of(const std::vector<transfer_id>& loads) const;
  void fail_for_older_load(request_id id);
  void give_up_unsettled(std::vector<transfer_id> transfers);
  void erase_settled(std::vector<transfer_id>& transfers) const;

  void report(std::string what);
  template <class Message>
  void send(Message message) { outgoing_.emplace_back(std::move(message)); }

  scheduler_state state_;
  engine_control control_{state_};
  std::optional<open_step> boundary_;
  std::deque<executing_step> executing_;      // dispatched with tokens, in order
  std::deque<std::variant<step_result, step_failed>> results_;  // came while a boundary was open
  std::deque<input> inputs_;
  std::vector<outgoing> outgoing_;
  std::vector<request_id> with_new_tokens_;   // committed, not sent to the request actors yet
  std::vector<request_finished> finished_;    // the same
  step_id last_enqueued_step_;
  std::vector<submit_loads> held_loads_;      // wait for the enqueueing of their after_step
  transfer_watch watch_;
  std::vector<waiting_reset> waiting_resets_; // for loads to settle
  std::chrono::nanoseconds apply_time_{0};    // since the last step was planned
};

}  // namespace sluice::inline v0
