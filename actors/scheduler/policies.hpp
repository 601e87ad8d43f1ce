// SPDX-License-Identifier: Apache-2.0
//
// The choices that an operator has about scheduling and offloading.
#pragma once

#include <cstdint>

namespace sluice::inline v0 {

/// The order of waiting requests, and whom a request that finds no block takes blocks from.
enum class scheduling_policy : std::uint8_t {
  fcfs,      ///< by arrival
  priority,  ///< by the request's priority, lower first, then by arrival
};

/// Whose chunks are stored.
enum class offload_scope : std::uint8_t {
  all,        ///< every request's, as they become complete
  preempted,  ///< only those of requests that are preempted, at the preemption
};

/// Which complete chunks a request offers.
enum class store_policy : std::uint8_t {
  incremental,    ///< those that did not come from the tier
  whole_request,  ///< all
};

/// Which idle chunks a full tier gives up first.
enum class eviction_policy_kind : std::uint8_t {
  lru,  ///< least recently used
  arc,  ///< adaptive between recency and frequency
};

}  // namespace sluice::inline v0
