// SPDX-License-Identifier: Apache-2.0
#include <list>
#include <map>

#include "host_tier_fixture.hpp"
#include "test_seed.hpp"

namespace sluice {
namespace {

using unit::numbers;
using unit::offered;

constexpr std::uint32_t num_slots = 6, num_keys = 10;

/// The tier in its plainest form.
struct tier_model {
  struct slot_record {
    bool is_used = false, is_written = false, is_good = false;
    std::uint32_t num_readers = 0;
    std::optional<std::uint32_t> key;  // none while it drains
  };

  std::vector<slot_record> slots{num_slots};
  std::list<std::uint32_t> lru;  // idle slots, oldest first
  numbers freed;
  std::uint32_t num_fresh = 0;

  std::optional<std::uint32_t> find(std::uint32_t key) const {
    for (std::uint32_t s = 0; s < num_slots; ++s)
      if (slots[s].key == key) return s;
    return std::nullopt;
  }

  bool is_idle(std::uint32_t s) const { return std::find(lru.begin(), lru.end(), s) != lru.end(); }

  void free_if_quiet(std::uint32_t s) {
    auto& slot = slots[s];
    if (slot.key || slot.is_written || slot.num_readers > 0) return;
    slot = {};
    freed.push_back(s);
  }

  void drop(std::uint32_t s) {
    if (!slots[s].key) return;
    slots[s].key.reset();
    lru.remove(s);
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
    numbers victims;
    for (const auto s : lru)
      if (num_free + victims.size() < wanted.size() && std::find(spared.begin(), spared.end(), s) == spared.end())
        victims.push_back(s);
    if (num_free + victims.size() < wanted.size()) return {true, {}, {}, {}};
    for (const auto s : victims) {
      result.evicted.push_back(*slots[s].key);
      drop(s);
    }
    for (const auto key : wanted) {
      auto s = num_fresh;
      if (num_fresh < num_slots)
        ++num_fresh;
      else
        s = freed.back(), freed.pop_back();
      slots[s] = {true, true, false, 0, key};
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
      lru.push_back(s);
    else if (slot.key)
      drop(s);
    else
      free_if_quiet(s);
  }

  void pin(std::uint32_t s) {
    lru.remove(s);
    ++slots[s].num_readers;
  }

  void unpin(std::uint32_t s) {
    if (--slots[s].num_readers > 0) return;
    if (slots[s].key)
      lru.push_back(s);
    else
      free_if_quiet(s);
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
  unit::host_tier tier{num_slots};
  tier_model model;

  void offer(std::mt19937_64& generator) {
    numbers keys;
    for (auto count = unit::below(generator, 5); count > 0; --count) keys.push_back(unit::below(generator, num_keys));
    EXPECT_EQ(tier.offer(keys), model.offer(keys));
  }

  void touch(std::mt19937_64& generator) {
    const auto key = unit::below(generator, num_keys);
    tier.touch({key});
    if (const auto s = model.find(key); s && model.is_idle(*s)) model.lru.remove(*s), model.lru.push_back(*s);
  }

  void one_operation(std::mt19937_64& generator) {
    const auto s = unit::below(generator, num_slots);
    const auto& slot = model.slots[s];
    switch (unit::below(generator, 20)) {
      case 0: {
        std::uint64_t num_present = 0;
        for (std::uint32_t key = 0; key < num_keys; ++key) num_present += model.find(key).has_value();
        EXPECT_EQ(tier.index.reset(), num_present);
        for (std::uint32_t i = 0; i < num_slots; ++i) model.drop(i);
        break;
      }
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
    ASSERT_EQ(tier.index.num_evictable(), model.lru.size());
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

// Guards: every answer, count, slot and victim of the tier after any sequence of operations.
TEST(host_tier_index, behaves_as_its_model) {
  unit::for_each_seed([](std::mt19937_64& generator) {
    tier_and_model both;
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
