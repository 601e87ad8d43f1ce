// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::inline v0 {

/// Rules of the design, each of which the engine enforces in one place. Builds with SLUICE_RULE_SWITCHES, for tests,
/// can take one out, to see what misses it; others are compiled as if nobody asked.
enum class rule : std::uint8_t {
  subtract_step_loads,      ///< a boundary leaves the loads of its own step alone
  flush_preempted,          ///< a boundary waits for the stores of preempted requests
  flush_reused,             ///< a store is flushed before a block that it reads is given out for writing
  pin_loaded_slots,         ///< a slot is no victim while a load reads it
  spare_offered_slots,      ///< a slot of a chunk of the offer is no victim of that offer
  pending_is_no_hit,        ///< a chunk is a hit once its store has settled well
  offer_current_epoch,      ///< content of an older epoch is not offered to a tier
  settle_as_stale,          ///< a load of an older epoch indexes nothing
  hold_load_targets,        ///< a load holds its blocks, whoever else does
  wait_for_joined_loads,    ///< a request that joined a load does not run before it has settled
  order_loads_after_steps,  ///< a load waits for the last step that may touch its targets
  match_attempts,           ///< what an older attempt computed is ignored at commit
  unpin_withdrawn,          ///< a withdrawn plan gives its pins back
  quarantine_given_up,      ///< memory under a transfer that was given up is not used before its end
  compute_last_token,       ///< shared blocks end before the last token, which is computed in a private one
  wait_for_own_stores,      ///< a request with unsettled stores of its own is not admitted
  index_good_blocks,        ///< of a failed load only what came before the first bad block is indexed
  forget_failed_stores,     ///< a chunk whose store failed is no hit
  keep_chunks_of_windows,   ///< blocks behind a window are kept while their chunk is not complete
  admit_no_victim,          ///< a plan admits nobody when it preempts
  adopt_transfers,          ///< a successor settles what its predecessor may have had on the stream
  wake_waiters,             ///< what ends a wait wakes who waits
  stage_by_step,            ///< the loads of a boundary are kept under its step, until that step is dispatched
  flush_stores_only,        ///< a boundary with a load that is older than its step is an error
  hold_unordered_loads,     ///< loads are not submitted before the step that they wait for is on the compute stream
  stage_again,              ///< loads that a load actor had staged when it ended are sent to its successor
  report_in_order,          ///< results of steps are reported, and so committed, in the order of steps
};

inline constexpr std::array<std::string_view, static_cast<std::size_t>(rule::report_in_order) + 1> rule_names{
    "subtract_step_loads", "flush_preempted", "flush_reused", "pin_loaded_slots", "spare_offered_slots",
    "pending_is_no_hit", "offer_current_epoch", "settle_as_stale", "hold_load_targets", "wait_for_joined_loads",
    "order_loads_after_steps", "match_attempts", "unpin_withdrawn", "quarantine_given_up", "compute_last_token",
    "wait_for_own_stores", "index_good_blocks", "forget_failed_stores", "keep_chunks_of_windows", "admit_no_victim",
    "adopt_transfers", "wake_waiters", "stage_by_step", "flush_stores_only", "hold_unordered_loads", "stage_again",
    "report_in_order"};

#ifdef SLUICE_RULE_SWITCHES
/// The rule that is taken out. Set it while no engine runs.
inline std::optional<rule> rule_taken_out;
inline bool holds(rule asked) { return rule_taken_out != asked; }
#else
constexpr bool holds(rule) { return true; }
#endif

}  // namespace sluice::inline v0
