// SPDX-License-Identifier: Apache-2.0
//
// Every request that has not ended, and the order in which requests are considered. Owned by the scheduler.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <sluice/actors/scheduler/engine_observer.hpp>
#include <sluice/actors/scheduler/policies.hpp>
#include <sluice/actors/scheduler/request_lifecycle.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// One per KV group.
struct group_state {
  std::vector<block_id> table;       ///< position p lies in table[p / block_size]; null where the window has passed
  std::uint32_t num_passed = 0;      ///< leading null blocks of the table
  std::vector<content_key> keys;     ///< of the full blocks of known tokens, computed once
  std::uint32_t next_chunk_to_offer = 0;     ///< chunks before it were accepted, or present already
  std::uint32_t num_chunks_at_refusal = 0;   ///< complete chunks when an offer was last refused
  std::uint32_t first_loaded_chunk = 0, end_loaded_chunk = 0;  ///< came from the tier

  std::uint32_t num_held() const { return static_cast<std::uint32_t>(table.size()) - num_passed; }
};

struct request_record {
  request_params params;
  std::uint64_t arrival = 0;               ///< rises with submission; smaller is older
  request_phase phase = request_phase::waiting;
  waiting_reason reason = waiting_reason::queued;
  attempt_id attempt;
  std::vector<token_id> tokens;            ///< prompt and output
  std::uint32_t num_computed_tokens = 0;   ///< leading tokens whose KV is in the table, committed or loaded
  std::uint32_t num_dispatched_tokens = 0; ///< the same once the steps in flight commit
  std::uint32_t num_pending_tokens = 0;    ///< sampled by steps in flight, not known yet
  std::uint32_t sample_index = 0;          ///< of the last dispatched one, among the samples of its step
  std::uint32_t max_computed_tokens = 0;   ///< over all attempts: what is computed again below it is recomputed
  std::vector<group_state> groups;
  epoch_id epoch;                          ///< of the oldest content in its tables; only the current one is stored
  std::vector<token_id> unsent;            ///< sampled, not yet sent to the request actor
  request_usage usage;
  stopwatch since_submission;
  bool is_counted = false;                 ///< its first admission was counted, prefix query included
  bool has_waited_enough = false;          ///< what is not known now counts as a miss
  bool is_timed = false;                   ///< a timer for that was asked for
  bool is_load_refused = false;            ///< the device refused a load of this attempt: it computes what it could load
  bool is_parked = false;                  ///< waiting, and not considered before its reason ends
  bool needs_budget = false;               ///< was looked up, had nothing to load and found no token budget
  std::optional<std::uint32_t> available_at_refusal;  ///< blocks that were not enough
  std::optional<content_key> missing_at_refusal;      ///< the first content that it did not find then

  std::uint32_t num_tokens() const { return static_cast<std::uint32_t>(tokens.size()); }
  std::uint32_t num_prompt_tokens() const { return static_cast<std::uint32_t>(params.prompt.size()); }
  std::uint32_t num_output_tokens() const { return num_tokens() - num_prompt_tokens(); }
  /// Known ones and those on the way.
  std::uint32_t num_planned_tokens() const { return num_tokens() + num_pending_tokens; }
};

class request_table {
 public:
  explicit request_table(scheduling_policy order) : order_(order) {}

  request_record& add(request_params params, std::size_t num_groups);
  request_record* find(request_id id);
  const request_record* find(request_id id) const;

  /// Moves a request along the lifecycle and between the queues. The event must be allowed in its phase.
  void apply(request_record& request, request_event event);

  /// Takes out a finished request.
  request_record remove(request_id id);

  /// Whether `a` goes before `b` by the policy.
  bool is_before(const request_record& a, const request_record& b) const {
    if (order_ == scheduling_policy::priority && a.params.priority != b.params.priority)
      return a.params.priority < b.params.priority;
    return a.arrival < b.arrival;
  }

  /// A waiting request is not considered until it is woken; `reason` says why.
  void park(request_record& request, waiting_reason reason);
  void wake(request_record& request);

  /// Running and loading requests, first in order first.
  std::span<request_record* const> active() const { return active_; }

  /// Visits waiting requests that are not parked in the order of admission (by the policy, preempted ones of the same
  /// priority first, then by arrival) until `keeps_going` answers false.
  template <class Function>
  void for_each_waiting(Function&& keeps_going) const {
    for (const auto& entry : waiting_)
      if (!keeps_going(*entry.request)) return;
  }

  std::size_t num_waiting() const { return requests_.size() - active_.size(); }
  std::size_t num_active() const { return active_.size(); }
  std::size_t num_loading() const { return num_loading_; }
  std::size_t size() const { return requests_.size(); }
  const std::unordered_map<request_id, request_record>& all() const { return requests_; }

 private:
  struct queue_entry {
    std::int32_t priority;  // 0 for all under fcfs
    bool is_new;            // never admitted before: behind those that were preempted
    std::uint64_t arrival;
    const request_record* request;
    friend auto operator<=>(const queue_entry& a, const queue_entry& b) {
      if (auto order = a.priority <=> b.priority; order != 0) return order;
      if (auto order = a.is_new <=> b.is_new; order != 0) return order;
      return a.arrival <=> b.arrival;
    }
    friend bool operator==(const queue_entry& a, const queue_entry& b) { return (a <=> b) == 0; }
  };

  queue_entry entry_of(const request_record& request) const;
  void leave_queue(request_record& request);
  void enter_queue(request_record& request);

  const scheduling_policy order_;
  std::unordered_map<request_id, request_record> requests_;
  std::set<queue_entry> waiting_;
  std::vector<request_record*> active_;
  std::size_t num_loading_ = 0;
  std::uint64_t last_arrival_ = 0;
};

}  // namespace sluice::inline v0
