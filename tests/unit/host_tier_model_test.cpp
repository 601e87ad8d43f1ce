// SPDX-License-Identifier: Apache-2.0
#include "host_tier_fixture.hpp"
#include "policy_models.hpp"
#include "test_seed.hpp"

namespace sluice {
namespace {

using unit::numbers;
using unit::offered;

constexpr std::uint32_t num_slots = 6, num_keys = 14;

/// The tier in its plainest form.
struct tier_model {
  struct slot_record {
    bool is_used = false, is_written = false, is_good = false;
    std::uint32_t num_readers = 0;
    std::optional<std::uint32_t> key;  // none while it drains
  };

  std::vector<slot_record> slots{num_slots};
  std::unique_ptr<unit::policy_model> policy;
  numbers freed;
  std::uint32_t num_fresh = 0;

  std::optional<std::uint32_t> find(std::uint32_t key) const {
    for (std::uint32_t s = 0; s < num_slots; ++s)
      if (slots[s].key == key) return s;
    return std::nullopt;
  }

  void free_if_quiet(std::uint32_t s) {
    auto& slot = slots[s];
    if (slot.key || slot.is_written || slot.num_readers > 0) return;
    slot = {};
    freed.push_back(s);
  }

  void drop(std::uint32_t s, bool is_evicted = false) {
    if (!slots[s].key) return;
    slots[s].key.reset();
    policy->remove(s, is_evicted);
    free_if_quiet(s);
  }

  offered offer(const numbers& keys) {
    numbers wanted, spared;
    for (const auto key : keys) {
      if (const auto slot = find(key))
        spared.push_back(*slot);
      else if (std::find(wanted.begin(), wanted.end(), key) == wanted.end())
        wanted.push_back(key);
    }
    offered result;
    const auto num_free = num_slots - num_fresh + freed.size();
    const auto num_needed = wanted.size() - std::min(num_free, wanted.size());
    std::size_t num_possible = 0;
    for (std::uint32_t s = 0; s < num_slots; ++s) num_possible += policy->is_idle(s) && !unit::contains(spared, s);
    if (num_possible < num_needed) return {true, {}, {}, {}};
    for (const auto s : policy->victims(wanted, num_needed, spared)) {
      result.evicted.push_back(*slots[s].key);
      drop(s, true);
    }
    for (const auto key : wanted) {
      auto s = num_fresh;
      if (num_fresh < num_slots)
        ++num_fresh;
      else
        s = freed.back(), freed.pop_back();
      slots[s] = {true, true, false, 0, key};
      policy->insert(s, key);
      result.accepted.push_back(key);
      result.slots.push_back(s);
    }
    return result;
  }

  void complete(std::uint32_t s, bool ok) {
    auto& slot = slots[s];
    slot.is_written = false;
    slot.is_good = ok;
    if (slot.key && ok)
      policy->set_idle(s, true, false);
    else if (slot.key)
      drop(s);
    else
      free_if_quiet(s);
  }

  void pin(std::uint32_t s) {
    if (slots[s].num_readers++ == 0) policy->set_idle(s, false, false);
  }

  void unpin(std::uint32_t s) {
    if (--slots[s].num_readers > 0) return;
    if (slots[s].key)
      policy->set_idle(s, true, true);
    else
      free_if_quiet(s);
  }

  void touch(std::uint32_t key) {
    const auto s = find(key);
    if (!s)
      policy->touch_absent(key);
    else if (policy->is_idle(*s))
      policy->set_idle(*s, true, true);
  }

  void reset() {
    for (std::uint32_t s = 0; s < num_slots; ++s) drop(s);
    policy->reset();
  }

  std::size_t num_idle() const {
    std::size_t count = 0;
    for (std::uint32_t s = 0; s < num_slots; ++s) count += policy->is_idle(s);
    return count;
  }

  slot_counts counts() const {
    slot_counts counts;
    for (const auto& slot : slots) {
      const bool is_pinned = slot.is_written || slot.num_readers > 0;
      counts.pinned += is_pinned;
      if (slot.key)
        ++(slot.is_written ? counts.pending : counts.ready);
      else
        ++(is_pinned ? counts.draining : counts.free);
    }
    return counts;
  }
};

struct tier_and_model {
  explicit tier_and_model(eviction_policy_kind kind) : tier(num_slots, make_eviction_policy(kind, num_slots)) {
    model.policy = unit::make_policy_model(kind, num_slots);
  }

  unit::host_tier tier;
  tier_model model;

  void offer(std::mt19937_64& generator) {
    numbers keys;
    for (auto count = unit::below(generator, 5); count > 0; --count) keys.push_back(unit::below(generator, num_keys));
    EXPECT_EQ(tier.offer(keys), model.offer(keys));
  }

  void touch(std::mt19937_64& generator) {
    const auto key = unit::below(generator, num_keys);
    tier.touch({key}), model.touch(key);
  }

  void reset(std::mt19937_64& generator) {
    if (unit::below(generator, 10) > 0) return;  // let ghosts live for a while
    std::uint64_t num_present = 0;
    for (std::uint32_t key = 0; key < num_keys; ++key) num_present += model.find(key).has_value();
    EXPECT_EQ(tier.index.reset(), (tier_reset_outcome{tier_reset_outcome::verdict::reset, num_present}));
    model.reset();
  }

  void one_operation(std::mt19937_64& generator) {
    const auto s = unit::below(generator, num_slots);
    const auto& slot = model.slots[s];
    switch (unit::below(generator, 20)) {
      case 0: reset(generator); break;
      case 1: tier.index.drop({s}), model.drop(s); break;
      case 2:
      case 3: touch(generator); break;
      case 4:
      case 5:
      case 6:
      case 7: offer(generator); break;
      case 8:
      case 9:
      case 10:
      case 11:
        if (slot.key && slot.is_good && slot.num_readers < 3) {
          EXPECT_EQ(tier.pin({*slot.key}), numbers{s});
          model.pin(s);
        }
        break;
      default:
        if (slot.is_written) {
          const bool ok = unit::below(generator, 4) > 0;
          tier.index.complete({s}, ok), model.complete(s, ok);
        } else if (slot.num_readers > 0) {
          tier.unpin({s}), model.unpin(s);
        }
    }
  }

  void expect_same() const {
    ASSERT_EQ(tier.counts(), model.counts());
    ASSERT_EQ(tier.index.num_evictable(), model.num_idle());
    for (std::uint32_t key = 0; key < num_keys; ++key) {
      const auto slot = model.find(key);
      const auto expected = !slot                           ? lookup_verdict::miss
                            : model.slots[*slot].is_written ? lookup_verdict::pending
                                                            : lookup_verdict::hit;
      ASSERT_EQ(tier.lookup(key), expected) << "key " << key;
      if (slot) {
        ASSERT_EQ(tier.index.find(unit::chunk(key)), slot_id{*slot}) << "key " << key;
      }
    }
    ASSERT_EQ(tier.index.check(), std::vector<std::string>{});
  }
};

struct host_tier_model : ::testing::TestWithParam<eviction_policy_kind> {};

INSTANTIATE_TEST_SUITE_P(policies, host_tier_model,
                         ::testing::Values(eviction_policy_kind::lru, eviction_policy_kind::arc),
                         [](const auto& kind) { return kind.param == eviction_policy_kind::lru ? "lru" : "arc"; });

// Guards: every answer, count, slot and victim of the tier after any sequence of operations; hazard EVICT-01, an offer
// is refused only if too few slots could be evicted in all.
TEST_P(host_tier_model, is_followed_after_any_operation) {
  unit::for_each_seed([](std::mt19937_64& generator) {
    tier_and_model both(GetParam());
    for (int i = 0; i < 4000; ++i) {
      SCOPED_TRACE("operation " + std::to_string(i));
      both.one_operation(generator);
      ASSERT_NO_FATAL_FAILURE(both.expect_same());
      if (::testing::Test::HasNonfatalFailure()) return;
    }
  });
}

}  // namespace
}  // namespace sluice
