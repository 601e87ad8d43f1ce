// SPDX-License-Identifier: Apache-2.0
#include "scripted_tier.hpp"

namespace sluice::testing {

lookup_verdict scripted_tier::lookup(const chunk_key& key) const {
  lookups_.push_back(key);
  return host_.lookup(key);
}

offer_outcome scripted_tier::offer(std::span<const chunk_key> keys) {
  auto outcome = answer_offer(keys);
  auto& recorded = offers_.emplace_back();
  recorded.keys.assign(keys.begin(), keys.end());
  recorded.is_refused = outcome.is_refused;
  for (const auto& accepted : outcome.accepted) recorded.accepted.push_back(accepted.position);
  return outcome;
}

offer_outcome scripted_tier::answer_offer(std::span<const chunk_key> keys) {
  if (script_.empty()) return host_.offer(keys);
  const auto next = std::move(script_.front());
  script_.pop_front();
  offer_outcome outcome;
  outcome.is_refused = next.is_refused;
  if (next.is_refused) return outcome;
  if (!next.positions) return host_.offer(keys);
  std::vector<chunk_key> some;
  for (auto position : *next.positions) some.push_back(keys[position]);
  outcome = host_.offer(some);
  for (auto& accepted : outcome.accepted) accepted.position = (*next.positions)[accepted.position];
  return outcome;
}

}  // namespace sluice::testing
