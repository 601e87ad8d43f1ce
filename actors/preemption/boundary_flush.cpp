// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/preemption/boundary_flush.hpp>

#include <set>

#include <sluice/actors/rules.hpp>

namespace sluice::inline v0 {

boundary_flush make_boundary_flush(const step_boundary& boundary, std::span<const transfer_id> current_step_loads) {
  const std::set<transfer_id> created_now(current_step_loads.begin(), current_step_loads.end());
  std::set<transfer_id> stores(boundary.reused.begin(), boundary.reused.end());
  std::set<transfer_id> older_loads, excluded;
  const auto is_created_now = [&](transfer_id id) {
    return holds(rule::subtract_step_loads) && created_now.contains(id);
  };
  for (const auto& pending : boundary.pending) {
    switch (pending.direction) {
      case transfer_direction::store: stores.insert(pending.id); break;
      case transfer_direction::load: (is_created_now(pending.id) ? excluded : older_loads).insert(pending.id);
    }
  }
  return {{stores.begin(), stores.end()},
          {older_loads.begin(), older_loads.end()},
          static_cast<std::uint32_t>(excluded.size())};
}

}  // namespace sluice::inline v0
