// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/actors/scheduler/step_plan.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// Ends a request now: gives back its blocks, leaves its loads, drops its record and returns its terminal message.
/// Transfers of it go on to their physical end.
request_finished end_request(scheduler_state& state, request_id id, finish_reason reason, errc code = errc::none,
                             std::string message = {});

struct commit_effects {
  std::vector<transfer_job> stores;           ///< created for chunks whose KV this step completed
  std::vector<request_finished> finished;
  std::vector<request_id> with_new_tokens;    ///< not finished; their tokens wait in `unsent`
};

/// What is wrong with a result of the plan, in words, empty when all is well: the model is somebody else's, so it is
/// checked that it sampled for whom it was asked to, and tokens that there are.
std::string find_fault(const scheduler_state& state, const step_plan& plan, const step_result& result);

/// Carries the results of a dispatched plan, without faults, into the state: appends tokens, indexes full blocks, offers complete
/// chunks to the tier, ends requests, gives back what windows have passed. Entries of an older attempt or an ended request are ignored wholly.
commit_effects commit_step(scheduler_state& state, const step_plan& plan, const step_result& result);

}  // namespace sluice::inline v0
