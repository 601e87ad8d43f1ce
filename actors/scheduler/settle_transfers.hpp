// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <sluice/actors/scheduler/scheduler_state.hpp>
#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// Carries the physical ends of transfers into the state. A load that went well is indexed and its waiters may run
/// once they have no other; after a failed or stale one its waiters go back to waiting and recompute from the first
/// block that is not there. A failed store drops its chunks. Requests that waited for a store are considered again. A load
/// that the device refused loses nothing; its waiters compute. Outcomes of unknown transfers are ignored; returns how
/// many there were.
std::size_t settle_transfers(scheduler_state& state, const transfers_settled& settled);

/// The transfers are not waited for any longer: stores no longer count for their requests, waiters of loads go back to
/// waiting and recompute, their chunks are dropped, and their blocks and slots stay quarantined until they settle.
/// Unknown ids are ignored.
void give_up(scheduler_state& state, std::span<const transfer_id> transfers);

}  // namespace sluice::inline v0
