// SPDX-License-Identifier: Apache-2.0
#include "host_tier_fixture.hpp"

namespace sluice {
namespace {

using unit::chunk;
using unit::host_tier;
using unit::numbers;
using unit::offered;
using unit::refused;
using unit::verdicts;
using enum lookup_verdict;

tier_reset_outcome dropped(std::uint64_t num_chunks) { return {tier_reset_outcome::verdict::reset, num_chunks}; }

/// LRU, and how often it was asked for victims.
class counting_policy final : public eviction_policy {
 public:
  counting_policy(std::uint32_t num_slots, int& num_asked)
      : policy_(make_lru_policy(num_slots)), num_asked_(num_asked) {}
  void insert(slot_id slot, const chunk_key& key) override { policy_->insert(slot, key); }
  void ready(slot_id slot) override { policy_->ready(slot); }
  void pin(slot_id slot) override { policy_->pin(slot); }
  void unpin(slot_id slot) override { policy_->unpin(slot); }
  void touch(slot_id slot) override { policy_->touch(slot); }
  void touch_absent(const chunk_key& key) override { policy_->touch_absent(key); }
  void evict(slot_id slot) override { policy_->evict(slot); }
  void forget(slot_id slot) override { policy_->forget(slot); }
  void reset() override { policy_->reset(); }
  std::size_t num_evictable() const override { return policy_->num_evictable(); }
  std::vector<slot_id> victims(std::span<const chunk_key> incoming, std::size_t count,
                               const std::function<bool(slot_id)>& is_spared) const override {
    ++num_asked_;
    return policy_->victims(incoming, count, is_spared);
  }

 private:
  std::unique_ptr<eviction_policy> policy_;
  int& num_asked_;
};

// Guards: scenario O054, a reset leaves nothing to be found and every slot to be used.
TEST(host_tier_index, o054_forgets_everything) {
  host_tier tier(4);
  tier.store({1});
  EXPECT_EQ(tier.offer({2, 3, 4}).slots, (numbers{1, 2, 3}));
  tier.complete({2, 3, 4}, false);
  EXPECT_EQ(tier.counts(), (slot_counts{3, 0, 1, 0, 0}));
  EXPECT_EQ(tier.index.reset(), dropped(1));
  EXPECT_EQ(tier.index.num_evictable(), 0U);
  EXPECT_EQ(tier.lookup({1, 2, 3, 4}), (verdicts{miss, miss, miss, miss}));
  EXPECT_EQ(tier.counts(), (slot_counts{4, 0, 0, 0, 0}));
  auto slots = tier.offer({5, 6, 7, 8}).slots;
  std::sort(slots.begin(), slots.end());
  EXPECT_EQ(slots, (numbers{0, 1, 2, 3}));
}

// Guards: scenario O059, slots are pushed as they are freed and popped from the end.
TEST(host_tier_index, o059_reuses_freed_slots_last_freed_first) {
  host_tier tier(4);
  tier.store({1, 2, 3, 4});
  tier.unpin(tier.pin({2, 3}));
  EXPECT_EQ(tier.offer({5, 6, 7}), (offered{false, {5, 6, 7}, {1, 3, 0}, {1, 4, 2}}));
}

// Guards: scenario O060, the reference sequence.
TEST(host_tier_index, o060_reference_sequence_with_four_slots) {
  host_tier tier(4);
  EXPECT_EQ(tier.offer({1, 2}), (offered{false, {1, 2}, {0, 1}, {}}));
  EXPECT_EQ(tier.lookup({1, 2}), (verdicts{pending, pending}));
  tier.complete({1, 2});
  EXPECT_EQ(tier.lookup({1, 2, 3}), (verdicts{hit, hit, miss}));
  EXPECT_EQ(tier.offer({2, 3, 4, 5}), (offered{false, {3, 4, 5}, {2, 3, 0}, {1}}));
  EXPECT_EQ(tier.offer({1, 6}), refused);
  tier.complete({3, 4, 5});
  EXPECT_EQ(tier.lookup({1, 2, 3, 4, 5, 0}), (verdicts{miss, hit, hit, hit, hit, miss}));
  const auto pinned = tier.pin({2, 3});
  EXPECT_EQ(pinned, (numbers{1, 2}));
  EXPECT_EQ(tier.offer({6, 7, 8}), refused);
  tier.unpin(pinned);
  EXPECT_EQ(tier.offer({6, 7, 8}), (offered{false, {6, 7, 8}, {1, 0, 3}, {4, 5, 2}}));
  tier.complete({6, 7, 8});
  tier.touch({3, 6, 7});
  EXPECT_EQ(tier.offer({9}), (offered{false, {9}, {3}, {8}}));
  tier.complete({9}, false);
  EXPECT_EQ(tier.lookup({7, 9}), (verdicts{hit, miss}));
}

// Guards: scenario O061, a load's slots stand in the order of the chunks it asked for.
TEST(host_tier_index, o061_pins_in_the_order_asked_for) {
  host_tier tier(4);
  tier.store({1, 2, 3});
  const auto first = tier.pin({1, 2, 3});
  EXPECT_EQ(first, (numbers{0, 1, 2}));
  tier.unpin(first);
  const auto second = tier.pin({2, 3, 1});
  EXPECT_EQ(second, (numbers{1, 2, 0}));
  tier.unpin({0, 2, 1});
  EXPECT_EQ(tier.counts().pinned, 0U);
}

// Guards: scenario O068, pinned slots are no victims, and a refusal asks no policy.
TEST(host_tier_index, o068_refuses_before_asking_the_policy) {
  int num_asked = 0;
  host_tier tier(4, std::make_unique<counting_policy>(4, num_asked));
  tier.store({10, 11, 12});
  const auto pinned = tier.pin({10, 11, 12});
  EXPECT_EQ(tier.index.num_evictable(), 0U);
  EXPECT_EQ(tier.offer({14, 15}), refused);
  EXPECT_EQ(num_asked, 0);
  tier.unpin(pinned);
  EXPECT_EQ(tier.index.num_evictable(), 3U);
  EXPECT_EQ(tier.offer({14, 15}), (offered{false, {14, 15}, {3, 0}, {10}}));
  EXPECT_EQ(num_asked, 1);
  EXPECT_EQ(tier.index.num_evictable(), 2U);
  tier.complete({14, 15});
  EXPECT_EQ(tier.index.num_evictable(), 4U);
}

// Guards: scenario O069, full and busy are different things.
TEST(host_tier_index, o069_a_full_but_idle_tier_is_not_busy) {
  host_tier tier(4);
  tier.store({1, 2, 3, 4});
  EXPECT_EQ(tier.counts(), (slot_counts{0, 0, 4, 0, 0}));
  EXPECT_EQ(tier.index.num_evictable(), 4U);
}

// Guards: scenario O071, the first of two loads to end does not unpin for the second.
TEST(host_tier_index, o071_two_loads_of_one_chunk_pin_it_until_the_second_ends) {
  host_tier tier(4);
  tier.store({1, 2, 3});
  EXPECT_EQ(tier.index.num_evictable(), 3U);
  const auto first = tier.pin({1});
  EXPECT_EQ(tier.index.num_evictable(), 2U);
  const auto second = tier.pin({1});
  EXPECT_EQ(first, second);
  EXPECT_EQ(tier.index.num_evictable(), 2U);
  EXPECT_EQ(tier.counts().pinned, 1U);
  tier.unpin(first);
  EXPECT_EQ(tier.index.num_evictable(), 2U);
  tier.unpin(second);
  EXPECT_EQ(tier.index.num_evictable(), 3U);
  EXPECT_EQ(tier.counts().pinned, 0U);
}

struct any_policy : ::testing::TestWithParam<eviction_policy_kind> {
  host_tier tier{4, make_eviction_policy(GetParam(), 4)};
};

INSTANTIATE_TEST_SUITE_P(host_tier_index, any_policy,
                         ::testing::Values(eviction_policy_kind::lru, eviction_policy_kind::arc),
                         [](const auto& kind) { return kind.param == eviction_policy_kind::lru ? "lru" : "arc"; });

// Guards: hazard EVICT-05, a chunk that is skipped as present is no victim of the same offer.
TEST_P(any_policy, chunks_of_an_offer_are_not_its_victims) {
  tier.store({2, 1, 13, 14});
  EXPECT_EQ(tier.offer({2, 3, 4, 5}), (offered{false, {3, 4, 5}, {3, 2, 1}, {1, 13, 14}}));
  EXPECT_EQ(tier.lookup({2, 3, 4, 5}), (verdicts{hit, pending, pending, pending}));
  tier.complete({3, 4, 5});
}

// Guards: hazard EVICT-05, where the offer's own chunks are the only victims left it is refused and changes nothing.
TEST_P(any_policy, an_offer_that_would_need_its_own_chunks_is_refused_whole) {
  tier.store({2, 1, 13, 14});
  const auto pinned = tier.pin({13});
  EXPECT_EQ(tier.offer({2, 3, 4, 5}), refused);
  EXPECT_EQ(tier.lookup({2, 1, 13, 14, 3}), (verdicts{hit, hit, hit, hit, miss}));
  tier.unpin(pinned);
  EXPECT_EQ(tier.offer({6}), (offered{false, {6}, {0}, {2}}));
}

// Guards: all or nothing; free slots are not taken by an offer that does not fit wholly.
TEST(host_tier_index, a_refused_offer_takes_no_free_slot) {
  host_tier tier(3);
  tier.store({1});
  EXPECT_EQ(tier.offer({2, 3, 4, 5}), refused);
  EXPECT_EQ(tier.counts(), (slot_counts{2, 0, 1, 0, 0}));
  EXPECT_EQ(tier.lookup(1), hit);
}

// Guards: a chunk that is offered twice, or is there already, gets one slot; then there may be nothing to store.
TEST(host_tier_index, duplicates_and_present_chunks_get_no_second_slot) {
  host_tier tier(4);
  EXPECT_EQ(tier.offer({1, 2, 1, 1}), (offered{false, {1, 2}, {0, 1}, {}}));
  EXPECT_EQ(tier.offer({2, 1}), (offered{false, {}, {}, {}}));
  EXPECT_EQ(tier.offer({}), (offered{false, {}, {}, {}}));
  EXPECT_EQ(tier.counts(), (slot_counts{2, 2, 0, 0, 2}));
}

// Guards: the same content of two KV groups is two chunks.
TEST(host_tier_index, groups_are_told_apart) {
  host_tier tier(4);
  tier.store({1});
  auto other = chunk(1);
  other.group = {1};
  EXPECT_EQ(tier.index.lookup(other), miss);
}

// Guards: a slot that a load reads is not handed out when its chunk is dropped, but after the load's end.
TEST(host_tier_index, a_dropped_slot_drains_while_a_load_reads_it) {
  host_tier tier(1);
  tier.store({1});
  const auto pinned = tier.pin({1});
  tier.pin({1});
  EXPECT_TRUE(tier.index.drop({0}));
  EXPECT_FALSE(tier.index.drop({0}));
  EXPECT_EQ(tier.lookup(1), miss);
  EXPECT_EQ(tier.counts(), (slot_counts{0, 0, 0, 1, 1}));
  EXPECT_EQ(tier.offer({2}), refused);
  tier.unpin(pinned);
  EXPECT_EQ(tier.offer({2}), refused);
  tier.unpin(pinned);
  EXPECT_EQ(tier.counts(), (slot_counts{1, 0, 0, 0, 0}));
  EXPECT_EQ(tier.offer({2}).slots, (numbers{0}));
}

// Guards: a slot that a store writes is not handed out when its chunk is dropped; the store's good end revives nothing.
TEST(host_tier_index, a_dropped_slot_drains_while_a_store_writes_it) {
  host_tier tier(1);
  tier.offer({1});
  tier.index.drop({0});
  EXPECT_EQ(tier.lookup(1), miss);
  EXPECT_EQ(tier.counts(), (slot_counts{0, 0, 0, 1, 1}));
  EXPECT_EQ(tier.offer({1}), refused);
  tier.index.complete({0}, true);
  EXPECT_EQ(tier.lookup(1), miss);
  EXPECT_EQ(tier.counts(), (slot_counts{1, 0, 0, 0, 0}));
}

// Guards: a described chunk is found by what it begins with while it is a hit, and by nothing afterwards.
TEST(host_tier_index, finds_a_chunk_by_its_beginning) {
  host_tier tier(2);
  const auto block = [](std::uint32_t number) { return chunk(number).content; };
  const std::vector<content_key> first{block(10), block(11)}, second{block(10), block(12)};
  tier.offer({1});
  tier.index.describe({0}, first);
  EXPECT_EQ(tier.index.find_beginning(block(10)), std::nullopt);
  tier.index.complete({0}, true);
  EXPECT_EQ(tier.index.find_beginning(block(11)), chunk(1));
  tier.offer({2});
  tier.index.describe({1}, second);
  for (const auto number : {10U, 11U}) EXPECT_EQ(tier.index.find_beginning(block(number)), chunk(1));
  EXPECT_EQ(tier.index.find_beginning(block(12)), std::nullopt);
  tier.index.complete({1}, true);
  EXPECT_EQ(tier.index.find_beginning(block(12)), chunk(2));
  EXPECT_EQ(tier.index.find_beginning(block(1)), std::nullopt);
  tier.index.drop({1});
  EXPECT_EQ(tier.index.find_beginning(block(12)), std::nullopt);
  EXPECT_EQ(tier.index.find_beginning(block(10)), chunk(1));
  EXPECT_EQ(tier.offer({3, 4}).evicted, (numbers{1}));
  for (const auto number : {10U, 11U}) EXPECT_EQ(tier.index.find_beginning(block(number)), std::nullopt);
}

// Guards: of chunks that begin alike each is found for as long as it is a hit, however the others end.
TEST(host_tier_index, chunks_that_begin_alike_do_not_hide_each_other) {
  const auto block = [](std::uint32_t number) { return chunk(number).content; };
  const std::vector<content_key> alike{block(10)};
  enum class ends { failed, dropped, reset };
  for (const auto how : {ends::failed, ends::dropped, ends::reset}) {
    host_tier tier(3);
    tier.offer({1});
    tier.index.describe({0}, alike);
    tier.complete({1});
    tier.offer({2, 3});
    for (const std::uint32_t slot : {1, 2}) tier.index.describe({slot}, alike);
    EXPECT_EQ(tier.index.find_beginning(block(10)), chunk(1));
    tier.complete({3});
    tier.index.drop({0});
    EXPECT_EQ(tier.index.find_beginning(block(10)), chunk(3));
    switch (how) {
      case ends::failed: tier.complete({2}, false); break;
      case ends::dropped: tier.index.drop({1}); break;
      case ends::reset: tier.index.reset(); break;
    }
    EXPECT_EQ(tier.index.find_beginning(block(10)),
              how == ends::reset ? std::nullopt : std::optional(chunk(3)));
    if (how != ends::failed) tier.index.complete({1}, true);
  }
}

// Guards: dropping an idle chunk frees its slot at once and only its slot.
TEST(host_tier_index, drops_an_idle_chunk) {
  host_tier tier(2);
  tier.store({1, 2});
  tier.index.drop({0});
  EXPECT_EQ(tier.lookup({1, 2}), (verdicts{miss, hit}));
  EXPECT_EQ(tier.counts(), (slot_counts{1, 0, 1, 0, 0}));
}

// Guards: a reset never refuses; slots in use drain, and the same chunks can be stored anew meanwhile.
TEST(host_tier_index, reset_drains_slots_in_use) {
  host_tier tier(4);
  tier.store({1, 2});
  const auto pinned = tier.pin({1});
  tier.offer({3});
  EXPECT_EQ(tier.index.reset(), dropped(3));
  EXPECT_EQ(tier.lookup({1, 2, 3}), (verdicts{miss, miss, miss}));
  EXPECT_EQ(tier.counts(), (slot_counts{2, 0, 0, 2, 2}));
  EXPECT_EQ(tier.offer({1}), (offered{false, {1}, {3}, {}}));
  tier.index.complete({2}, true);
  tier.unpin(pinned);
  EXPECT_EQ(tier.lookup({1, 3}), (verdicts{pending, miss}));
  tier.complete({1});
  EXPECT_EQ(tier.counts(), (slot_counts{3, 0, 1, 0, 0}));
  EXPECT_EQ(tier.index.reset(), dropped(1));
}

// Guards: touching pinned, pending and absent chunks is no use of an idle slot.
TEST(host_tier_index, touch_refreshes_evictable_chunks_only) {
  host_tier tier(4);
  tier.store({1, 2, 3});
  const auto pinned = tier.pin({3});
  tier.offer({4});
  tier.touch({1, 3, 4, 5});
  EXPECT_EQ(tier.index.num_evictable(), 2U);
  EXPECT_EQ(tier.offer({6}), (offered{false, {6}, {1}, {2}}));
  tier.unpin(pinned);
}

}  // namespace
}  // namespace sluice
