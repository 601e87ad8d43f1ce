// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <unordered_map>

#include <sluice/actors/scheduler/eviction_policy.hpp>
#include <sluice/actors/scheduler/tier_index.hpp>

namespace sluice::inline v0 {

/// The host memory tier: a fixed number of slots in one arena. Fresh slots are taken in order, then freed ones, last
/// freed first. It never refuses a reset.
class host_tier_index final : public tier_index {
 public:
  host_tier_index(std::uint32_t num_slots, std::unique_ptr<eviction_policy> policy);

  std::string name() const override { return "host"; }
  lookup_verdict lookup(const chunk_key& key) const override;
  offer_outcome offer(std::span<const chunk_key> keys) override;
  void complete(slot_id slot, bool ok) override;
  std::vector<slot_id> pin(std::span<const chunk_key> keys) override;
  void unpin(std::span<const slot_id> slots) override;
  void touch(std::span<const chunk_key> keys) override;
  void describe(slot_id slot, std::span<const content_key> leading_blocks) override;
  std::optional<chunk_key> find_beginning(const content_key& block) const override;
  bool drop(slot_id slot) override;
  tier_reset_outcome reset() override;
  slot_counts counts() const override;
  std::vector<std::string> check() const override;

  std::size_t num_evictable() const { return policy_->num_evictable(); }
  /// The slot of a present chunk, ready or pending.
  std::optional<slot_id> find(const chunk_key& key) const;

 private:
  enum class slot_state : std::uint8_t { free, pending, ready, draining };
  struct slot_record {
    slot_state state = slot_state::free;
    bool is_written = false;        // a store has not ended
    std::uint32_t num_readers = 0;  // loads that have not ended
    chunk_key key;
    std::vector<content_key> leading_blocks;
  };

  slot_id take_slot();
  void move_to(slot_id slot, slot_state next);
  offer_outcome accept(std::span<const chunk_key> keys, const std::vector<std::size_t>& wanted,
                       const std::vector<slot_id>& victims);
  void release(slot_id slot);
  void add_beginnings(slot_id slot);
  void forget_beginnings(slot_id slot);
  void free_if_quiet(slot_id slot);
  bool is_present(slot_id slot) const;
  bool is_evictable(slot_id slot) const;

  std::vector<slot_record> slots_;
  std::unordered_map<chunk_key, slot_id> index_;
  std::unordered_map<content_key, std::set<slot_id>> beginnings_;  // of ready chunks that were described
  std::vector<slot_id> freed_;
  std::uint32_t num_fresh_used_ = 0;
  std::unique_ptr<eviction_policy> policy_;
  slot_counts counts_;
};

}  // namespace sluice::inline v0
