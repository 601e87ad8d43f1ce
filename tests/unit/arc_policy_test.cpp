// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/arc_policy.hpp>

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

/// A host tier with adaptive replacement, whose lists can be read.
struct arc_tier {
  explicit arc_tier(std::uint32_t num_slots) : arc_tier(num_slots, std::make_unique<arc_policy>(num_slots)) {}
  arc_tier(std::uint32_t num_slots, std::unique_ptr<arc_policy> policy)
      : arc(*policy), tier(num_slots, std::move(policy)) {}

  /// Which of `keys` are in `list`, and which are its ghosts.
  numbers members(arc_policy::side list, const numbers& keys) const {
    numbers found;
    for (const auto key : keys)
      if (const auto slot = tier.index.find(chunk(key)); slot && arc.side_of(*slot) == list) found.push_back(key);
    return found;
  }
  numbers ghosts(arc_policy::side list, const numbers& keys) const {
    numbers found;
    for (const auto key : keys)
      if (arc.ghost_side_of(chunk(key)) == list) found.push_back(key);
    return found;
  }

  arc_policy& arc;
  host_tier tier;
};

const numbers all{1, 2, 3, 4, 5, 6, 7, 8, 9};

// Guards: scenario O062, pinned chunks are no victims.
TEST(arc_policy, o062_pinned_chunks_are_no_victims) {
  arc_tier both(4);
  auto& tier = both.tier;
  tier.store({1, 2, 3, 4});
  const auto pinned = tier.pin({2, 3});
  EXPECT_EQ(pinned, (numbers{1, 2}));
  EXPECT_EQ(tier.offer({5, 6, 7}), refused);
  EXPECT_EQ(tier.lookup({1, 2, 3, 4}), (verdicts{hit, hit, hit, hit}));
  tier.unpin(pinned);
  EXPECT_EQ(tier.offer({5, 6, 7}), (offered{false, {5, 6, 7}, {1, 3, 0}, {1, 4, 2}}));
}

// Guards: scenario O063, new chunks enter the recent list.
TEST(arc_policy, o063_new_chunks_are_recent) {
  arc_tier both(4);
  auto& tier = both.tier;
  EXPECT_EQ(tier.offer({1, 2}), (offered{false, {1, 2}, {0, 1}, {}}));
  EXPECT_EQ(tier.lookup({1, 2}), (verdicts{pending, pending}));
  tier.complete({1, 2});
  EXPECT_EQ(tier.lookup({1, 2, 3}), (verdicts{hit, hit, miss}));
  EXPECT_EQ(both.arc.size(arc_policy::recent), 2U);
  EXPECT_EQ(both.arc.size(arc_policy::frequent), 0U);
}

// Guards: scenario O064, a second use makes a chunk frequent; so does the end of a load, and not before.
TEST(arc_policy, o064_a_second_use_makes_frequent) {
  arc_tier both(4);
  auto& tier = both.tier;
  tier.store({1, 2});
  tier.touch({1});
  EXPECT_EQ(both.members(arc_policy::recent, all), numbers{2});
  EXPECT_EQ(both.members(arc_policy::frequent, all), numbers{1});
  const auto pinned = tier.pin({2});
  EXPECT_EQ(both.members(arc_policy::recent, all), numbers{2});
  tier.unpin(pinned);
  EXPECT_EQ(both.members(arc_policy::frequent, all), (numbers{1, 2}));
}

// Guards: scenario O065, a ghost of the recent list that is wanted raises the target.
TEST(arc_policy, o065_a_recent_ghost_raises_the_target) {
  arc_tier both(2);
  auto& tier = both.tier;
  tier.store({1, 2});
  EXPECT_EQ(both.arc.target(), 0.0);
  tier.store({3});
  EXPECT_EQ(both.ghosts(arc_policy::recent, all), numbers{1});
  tier.touch({1});
  EXPECT_EQ(both.arc.target(), 1.0);
}

// Guards: scenario O066, the side above its target gives the victim.
TEST(arc_policy, o066_the_victim_follows_the_target) {
  arc_tier both(4);
  auto& tier = both.tier;
  tier.store({1, 2, 3, 4});
  tier.touch({3, 4});
  EXPECT_EQ(both.members(arc_policy::recent, all), (numbers{1, 2}));
  EXPECT_EQ(both.members(arc_policy::frequent, all), (numbers{3, 4}));
  both.arc.set_target(1);
  EXPECT_EQ(tier.offer({5}).evicted, numbers{1});
  tier.complete({5});
  EXPECT_EQ(both.ghosts(arc_policy::recent, all), numbers{1});
  EXPECT_EQ(both.members(arc_policy::recent, all), (numbers{2, 5}));
}

// Guards: scenario O067, frequent chunks outlive a scan.
TEST(arc_policy, o067_frequent_chunks_outlive_a_scan) {
  arc_tier both(4);
  auto& tier = both.tier;
  tier.store({1, 2});
  EXPECT_EQ(tier.offer({3, 4, 5}).evicted, numbers{1});
  tier.complete({3, 4, 5});
  tier.touch({2, 3});
  EXPECT_EQ(both.members(arc_policy::recent, all), (numbers{4, 5}));
  EXPECT_EQ(both.members(arc_policy::frequent, all), (numbers{2, 3}));
  EXPECT_EQ(tier.offer({6}).evicted, numbers{4});
  tier.complete({6});
  EXPECT_EQ(tier.lookup({2, 3}), (verdicts{hit, hit}));
}

// Guards: a scan offered as one batch takes no more frequent chunks than one offered piece by piece.
TEST(arc_policy, the_victims_of_a_batch_count_its_own_chunks) {
  arc_tier both(4);
  both.tier.store({1, 2, 3, 4});
  both.tier.touch({3, 4});
  both.arc.set_target(2);
  EXPECT_EQ(both.tier.offer({5, 6, 7}).evicted, (numbers{3, 1, 2}));
  EXPECT_EQ(both.members(arc_policy::frequent, all), numbers{4});
}

// Guards: with the recent list exactly at its target, a ghost of the frequent list makes room for itself there.
TEST(arc_policy, a_frequent_ghost_takes_from_the_recent_list_at_its_target) {
  for (const bool is_ghost : {false, true}) {
    arc_tier both(4);
    auto& tier = both.tier;
    tier.store({1, 2, 3, 4});
    tier.touch({1, 2, 3, 4});
    EXPECT_EQ(tier.offer({5, 6}).evicted, (numbers{1, 2}));  // the recent list has no victims
    tier.complete({5, 6});
    EXPECT_EQ(both.ghosts(arc_policy::frequent, all), (numbers{1, 2}));
    both.arc.set_target(2);
    EXPECT_EQ(tier.offer({is_ghost ? 1U : 7U}).evicted, (numbers{is_ghost ? 5U : 3U}));
  }
}

// Guards: a ghost that is stored again is frequent, and moves the target once: when wanted, or else when inserted.
TEST(arc_policy, a_ghost_stored_again_is_frequent_and_counts_once) {
  for (const bool is_wanted : {false, true}) {
    arc_tier both(2);
    both.tier.store({1, 2});
    both.tier.store({3});
    if (is_wanted) both.tier.touch({1});
    both.tier.store({1});
    EXPECT_EQ(both.arc.target(), 1.0);
    EXPECT_EQ(both.members(arc_policy::frequent, all), numbers{1});
    EXPECT_EQ(both.ghosts(arc_policy::recent, all), numbers{2});
  }
}

// Guards: ghosts of the frequent list lower the target, and the smaller ghost list moves it further.
TEST(arc_policy, the_smaller_ghost_list_moves_the_target_further) {
  arc_tier both(4);
  auto& tier = both.tier;
  tier.store({1, 2, 3, 4});
  tier.touch({4});
  tier.store({5, 6, 7});  // ghosts 1, 2, 3 of the recent list
  both.arc.set_target(4);
  tier.store({8});  // ghost 4 of the frequent list
  EXPECT_EQ(both.ghosts(arc_policy::recent, all), (numbers{1, 2, 3}));
  EXPECT_EQ(both.ghosts(arc_policy::frequent, all), numbers{4});
  tier.touch({4});
  EXPECT_EQ(both.arc.target(), 1.0);
  tier.touch({4});
  EXPECT_EQ(both.arc.target(), 0.0);
  for (int i = 0; i < 6; ++i) tier.touch({1});
  EXPECT_EQ(both.arc.target(), 4.0);
}

// Guards: ghost lists are bounded by the number of slots; the oldest ghost goes first.
TEST(arc_policy, ghosts_are_bounded) {
  arc_tier both(2);
  for (std::uint32_t key = 1; key <= 6; ++key) both.tier.store({key});
  EXPECT_EQ(both.ghosts(arc_policy::recent, all), (numbers{3, 4}));
  EXPECT_EQ(both.arc.num_ghosts(arc_policy::recent), 2U);
}

// Guards: what is dropped or fails leaves no ghost, and a reset forgets ghosts and target.
TEST(arc_policy, only_evictions_leave_ghosts) {
  arc_tier both(3);
  auto& tier = both.tier;
  tier.store({1, 2});
  tier.pin({2});
  tier.index.drop({0});
  tier.index.drop({1});
  tier.offer({3});
  tier.complete({3}, false);
  EXPECT_EQ(both.arc.num_ghosts(arc_policy::recent), 0U);
  EXPECT_EQ(both.arc.size(arc_policy::recent), 0U);
  tier.unpin({1});
  tier.store({4, 5, 6});
  tier.store({7});
  tier.touch({4});
  EXPECT_EQ(both.arc.target(), 1.0);
  const auto pinned = tier.pin({5});
  tier.index.reset();
  tier.unpin(pinned);
  EXPECT_EQ(both.arc.target(), 0.0);
  EXPECT_EQ(both.arc.num_ghosts(arc_policy::recent), 0U);
  EXPECT_EQ(both.arc.size(arc_policy::recent) + both.arc.size(arc_policy::frequent), 0U);
}

// Guards: hazard EVICT-01 (1), with every victim of the preferred list pinned the other list gives them.
TEST(arc_policy, evict_01_the_other_list_gives_the_victims) {
  for (const double target : {0.0, 4.0}) {
    arc_tier both(4);
    auto& tier = both.tier;
    tier.store({1, 2, 3, 4});
    tier.touch({3, 4});
    both.arc.set_target(target);
    const auto pinned = tier.pin(target == 0 ? numbers{1, 2} : numbers{3, 4});
    EXPECT_EQ(tier.offer({5, 6}).evicted, (target == 0 ? numbers{3, 4} : numbers{1, 2}));
    tier.unpin(pinned);
  }
}

// Guards: hazard EVICT-01 (2), a batch takes from both lists when one runs out midway; with too few victims in all it
// is refused and changes nothing.
TEST(arc_policy, evict_01_a_list_may_run_out_midway) {
  arc_tier both(4);
  auto& tier = both.tier;
  tier.store({1, 2, 3, 4});
  tier.touch({3, 4});
  const auto pinned = tier.pin({1, 2, 3, 4});
  EXPECT_EQ(tier.offer({5, 6}), refused);
  EXPECT_EQ(tier.counts(), (slot_counts{0, 0, 4, 0, 4}));
  tier.unpin(pinned);
  const auto one = tier.pin({1});
  tier.store({5});  // evicts 2, the oldest of the frequent ones
  EXPECT_EQ(both.members(arc_policy::recent, all), numbers{5});
  EXPECT_EQ(both.members(arc_policy::frequent, all), (numbers{1, 3, 4}));
  EXPECT_EQ(tier.offer({6, 7, 8, 9}), refused);
  EXPECT_EQ(both.members(arc_policy::recent, all), numbers{5});
  EXPECT_EQ(both.members(arc_policy::frequent, all), (numbers{1, 3, 4}));
  EXPECT_EQ(tier.offer({6, 7, 8}).evicted, (numbers{5, 3, 4}));
  tier.unpin(one);
}

}  // namespace
}  // namespace sluice
