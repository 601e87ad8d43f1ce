// SPDX-License-Identifier: Apache-2.0
#include "scripted_tier.hpp"

namespace sluice::testing {

lookup_verdict scripted_tier::lookup(const chunk_key& key) const {
  lookups_.push_back(key);
  if (const auto found = chunk_verdicts_.find(key); found != chunk_verdicts_.end()) return found->second;
  return lookup_verdict_.value_or(host_.lookup(key));
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

tier_reset_outcome scripted_tier::reset() {
  if (reset_verdict_ != tier_reset_outcome::verdict::reset) return {reset_verdict_, 0};
  return host_.reset();
}

}  // namespace sluice::testing
