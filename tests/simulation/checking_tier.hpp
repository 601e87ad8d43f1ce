// SPDX-License-Identifier: Apache-2.0
//
// The host tier, looked at from outside: what the seam promises is checked with every call.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/actors/scheduler/host_tier_index.hpp>

namespace sluice::simulation {

class checking_tier final : public tier_index {
 public:
  struct hooks {
    std::function<void()> on_reset;                                       ///< all content is forgotten
    std::function<void(slot_id slot, const chunk_key& key)> on_readable;  ///< the slot's chunk is a hit from now on
    std::function<void(std::string)> complain;
  };

  checking_tier(std::unique_ptr<host_tier_index> tier, hooks calls) : tier_(std::move(tier)), hooks_(std::move(calls)) {}

  std::string name() const override { return tier_->name(); }
  lookup_verdict lookup(const chunk_key& key) const override { return tier_->lookup(key); }

  offer_outcome offer(std::span<const chunk_key> keys) override {
    auto outcome = tier_->offer(keys);
    for (const auto& evicted : outcome.evicted)
      if (std::find(keys.begin(), keys.end(), evicted) != keys.end())
        hooks_.complain("an offer evicted a chunk that it names itself");
    for (const auto& accepted : outcome.accepted) {
      if (accepted.slot.value >= slots_.size()) slots_.resize(accepted.slot.value + 1);
      slots_[accepted.slot.value] = keys[accepted.position];
    }
    return outcome;
  }

  void complete(slot_id slot, bool ok) override {
    tier_->complete(slot, ok);
    if (ok && tier_->lookup(slots_[slot.value]) == lookup_verdict::hit) hooks_.on_readable(slot, slots_[slot.value]);
  }

  tier_reset_outcome reset() override {
    const auto outcome = tier_->reset();
    if (outcome.result == tier_reset_outcome::verdict::reset) hooks_.on_reset();
    return outcome;
  }

  std::vector<slot_id> pin(std::span<const chunk_key> keys) override { return tier_->pin(keys); }
  void unpin(std::span<const slot_id> slots) override { tier_->unpin(slots); }
  void touch(std::span<const chunk_key> keys) override { tier_->touch(keys); }
  void describe(slot_id slot, std::span<const content_key> blocks) override { tier_->describe(slot, blocks); }
  std::optional<chunk_key> find_beginning(const content_key& block) const override { return tier_->find_beginning(block); }
  bool drop(slot_id slot) override { return tier_->drop(slot); }
  slot_counts counts() const override { return tier_->counts(); }
  std::vector<std::string> check() const override { return tier_->check(); }

 private:
  std::unique_ptr<host_tier_index> tier_;
  hooks hooks_;
  std::vector<chunk_key> slots_;  // what was last stored into each
};

}  // namespace sluice::simulation
