// SPDX-License-Identifier: Apache-2.0
//
// A host tier whose answers to offers, lookups and resets a test writes beforehand; everything else is as in the real
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sluice/actors/scheduler/host_tier_index.hpp>

namespace sluice::testing {

class scripted_tier final : public tier_index {
 public:
  struct recorded_offer {
    std::vector<chunk_key> keys;
    bool is_refused = false;
    std::vector<std::size_t> accepted;  ///< positions
  };

  explicit scripted_tier(std::uint32_t num_slots) : host_(num_slots, make_lru_policy(num_slots)) {}

  // The answers to the next offers, in the order of the calls; beyond them the host tier answers.
  void accept_only(std::vector<std::size_t> positions) { script_.push_back({false, std::move(positions)}); }
  void accept_all() { script_.push_back({false, std::nullopt}); }
  void refuse() { script_.push_back({true, std::nullopt}); }

  /// From now on lookups are answered so; without a verdict by the host tier.
  void answer_lookups(std::optional<lookup_verdict> verdict) { lookup_verdict_ = verdict; }
  /// The same for one chunk, whatever is said of all.
  void answer_lookup(const chunk_key& key, std::optional<lookup_verdict> verdict) {
    chunk_verdicts_.erase(key);
    if (verdict) chunk_verdicts_.emplace(key, *verdict);
  }
  /// From now on resets are answered so; unless that is `reset` nothing is dropped.
  void answer_resets(tier_reset_outcome::verdict verdict) { reset_verdict_ = verdict; }

  const std::vector<recorded_offer>& offers() const { return offers_; }
  /// Keys that were looked up since the last call.
  std::vector<chunk_key> take_lookups() { return std::exchange(lookups_, {}); }
  /// What a lookup would say; not recorded.
  lookup_verdict verdict(const chunk_key& key) const { return host_.lookup(key); }

  std::string name() const override { return host_.name(); }
  lookup_verdict lookup(const chunk_key& key) const override;
  offer_outcome offer(std::span<const chunk_key> keys) override;
  void complete(slot_id slot, bool ok) override { host_.complete(slot, ok); }
  std::vector<slot_id> pin(std::span<const chunk_key> keys) override { return host_.pin(keys); }
  void unpin(std::span<const slot_id> slots) override { host_.unpin(slots); }
  void touch(std::span<const chunk_key> keys) override { host_.touch(keys); }
  void describe(slot_id slot, std::span<const content_key> blocks) override { host_.describe(slot, blocks); }
  std::optional<chunk_key> find_beginning(const content_key& block) const override { return host_.find_beginning(block); }
  bool drop(slot_id slot) override { return host_.drop(slot); }
  tier_reset_outcome reset() override;
  slot_counts counts() const override { return host_.counts(); }
  std::vector<std::string> check() const override { return host_.check(); }

 private:
  struct answer {
    bool is_refused = false;
    std::optional<std::vector<std::size_t>> positions;  // all without
  };

  offer_outcome answer_offer(std::span<const chunk_key> keys);

  host_tier_index host_;
  std::deque<answer> script_;
  std::optional<lookup_verdict> lookup_verdict_;
  std::unordered_map<chunk_key, lookup_verdict> chunk_verdicts_;
  tier_reset_outcome::verdict reset_verdict_ = tier_reset_outcome::verdict::reset;
  std::vector<recorded_offer> offers_;
  mutable std::vector<chunk_key> lookups_;
};

}  // namespace sluice::testing
