// SPDX-License-Identifier: Apache-2.0
//
// Which of a request's chunks are offered to the tier, and the store that comes of it.
#pragma once

#include <vector>

#include <sluice/actors/scheduler/scheduler_state.hpp>

namespace sluice::inline v0 {

/// Offers the chunks whose KV is complete and that were not offered yet, as far as the options let: one offer, at most
/// one store, over all groups. A refused offer is made again when one more chunk is complete, or at the request's end;
/// an accepted one is final, also for chunks that got no slot. Content of an older epoch is not offered.
void store_complete_chunks(scheduler_state& state, request_record& request, bool is_ending,
                           std::vector<transfer_job>& stores);

/// Before its blocks are given away: offers all complete chunks that the tier does not have, whatever the options say
/// about the request's kind of chunks but for its own limit. The store goes to `victim_stores`.
void store_victim(scheduler_state& state, const request_record& request);

}  // namespace sluice::inline v0
