// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/chunk_sightings.hpp>

#include <limits>

namespace sluice::inline v0 {

void chunk_sightings::sight(const chunk_key& key) {
  auto& count = counts_.refresh(key);
  if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
}

std::uint32_t chunk_sightings::count(const chunk_key& key) const {
  const auto* found = counts_.find(key);
  return found == nullptr ? 0 : *found;
}

}  // namespace sluice::inline v0
