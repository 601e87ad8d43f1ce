// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sluice/messages/messages.hpp>

namespace sluice::inline v0 {

/// What a boundary must wait for.
struct boundary_flush {
  std::vector<transfer_id> stores;       ///< to flush, rising, each once
  std::vector<transfer_id> older_loads;  ///< an invariant violation unless empty: then nothing may be flushed
  std::uint32_t num_excluded_loads = 0;  ///< loads of the boundary's own step that were subtracted, each once
};

/// To flush = the pending transfers of the preempted requests - the loads created in this step, and each that remains
/// must be a store; and the stores whose blocks are re-used.
boundary_flush make_boundary_flush(const step_boundary& boundary, std::span<const transfer_id> current_step_loads);

}  // namespace sluice::inline v0
