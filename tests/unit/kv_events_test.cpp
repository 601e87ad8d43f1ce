// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/kv_events.hpp>

#include <array>
#include <utility>

#include <gtest/gtest.h>

namespace sluice {
namespace {

using event_kind = kv_event::kind;
using keys = std::vector<content_key>;
using tokens = std::vector<token_id>;
using group_kind = kv_group_spec::kind;

const kv_place host{"host", {}};

content_key h(std::uint8_t number) {
  content_key key{};
  key[0] = static_cast<std::uint8_t>(number + 1);
  return key;
}
chunk_key k(std::uint8_t last_block, std::uint16_t group = 0) { return {h(last_block), {group}}; }

keys hashes(std::uint8_t first, std::uint8_t end) {
  keys found;
  for (auto block = first; block < end; ++block) found.push_back(h(block));
  return found;
}
tokens counted(token_id first, std::size_t count) {
  tokens found;
  for (std::size_t i = 0; i < count; ++i) found.push_back(first + static_cast<token_id>(i));
  return found;
}

kv_group_spec full() { return {group_kind::full_attention, 0, 4}; }
kv_group_spec window(std::uint32_t window_tokens) { return {group_kind::sliding_window, window_tokens, 4}; }

kv_event stored_event(const kv_place& place, keys of, std::optional<content_key> parent, tokens with) {
  return {event_kind::stored, place.medium, place.locality,  {}, group_kind::full_attention, {},
          std::move(of),      parent,       std::move(with), 4};
}
kv_event placeholder(const kv_place& place, content_key of) {
  return {event_kind::stored, place.medium, place.locality, {}, group_kind::full_attention, {}, {of}, {}, {}, 0};
}
kv_event removed_event(const kv_place& place, keys of) {
  return {
      event_kind::removed, place.medium, place.locality, {}, group_kind::full_attention, {}, std::move(of), {}, {}, 0};
}

/// A log, and a sequence of full blocks h0, h1, ... of four tokens each, which are 1, 2, 3, ...
struct log_of_sequence {
  explicit log_of_sequence(std::uint32_t blocks_per_chunk, std::uint8_t num_blocks,
                           std::vector<kv_group_spec> groups = {full()}, bool is_self_described = true)
      : log({true, is_self_described, std::move(groups), blocks_per_chunk}),
        block_keys(hashes(0, num_blocks)),
        sequence_tokens(counted(1, std::size_t{num_blocks} * 4)) {}

  kv_sequence sequence(std::uint16_t group = 0) const { return {{group}, block_keys, sequence_tokens}; }
  void describe(std::uint32_t num_chunks, std::uint16_t group = 0) {
    for (std::uint32_t chunk = 0; chunk < num_chunks; ++chunk) log.describe(sequence(group), chunk);
  }
  std::vector<kv_event> stored(std::vector<chunk_key> chunks, const kv_place& place = host) {
    log.stored(place, chunks);
    return log.take();
  }
  std::vector<kv_event> removed(std::vector<chunk_key> chunks, const kv_place& place = host) {
    log.removed(place, chunks);
    return log.take();
  }

  kv_event_log log;
  keys block_keys;
  tokens sequence_tokens;
};

// Guards: scenario O072, a reset of the tier empties the side table, and is told.
TEST(kv_events, o072_a_reset_empties_the_side_table) {
  log_of_sequence one(1, 3);
  one.describe(3);
  EXPECT_EQ(one.log.num_described(), 3U);
  one.log.cleared(host);
  EXPECT_EQ(one.log.num_described(), 0U);
  const auto events = one.log.take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].what, event_kind::cleared);
  EXPECT_EQ(events[0].medium, "host");
  EXPECT_EQ(one.log.take(), std::vector<kv_event>{});
}

// Guards: scenario O073, a chunk that nobody described gets a placeholder; a later hit describes it for its removal.
TEST(kv_events, o073_a_placeholder_is_healed_by_a_later_hit) {
  log_of_sequence one(2, 2);
  EXPECT_EQ(one.stored({k(1)}), std::vector<kv_event>{placeholder(host, h(1))});
  EXPECT_EQ(one.log.num_described(), 0U);
  one.describe(1);
  EXPECT_TRUE(one.log.is_described(k(1)));
  EXPECT_EQ(one.log.take(), std::vector<kv_event>{});
  EXPECT_EQ(one.removed({k(1)}), std::vector<kv_event>{removed_event(host, hashes(0, 2))});
  EXPECT_FALSE(one.log.is_described(k(1)));
}

// Guards: scenario O074, one stored event per chunk; one removed event with the keys of all blocks.
TEST(kv_events, o074_chunks_of_three_blocks) {
  log_of_sequence one(3, 6);
  one.describe(2);
  EXPECT_EQ(one.stored({k(2), k(5)}), (std::vector<kv_event>{stored_event(host, hashes(0, 3), {}, counted(1, 12)),
                                                             stored_event(host, hashes(3, 6), h(2), counted(13, 12))}));
  EXPECT_EQ(one.log.num_described(), 2U);
  EXPECT_EQ(one.removed({k(2), k(5)}), std::vector<kv_event>{removed_event(host, hashes(0, 6))});
  EXPECT_EQ(one.log.num_described(), 0U);
}

// Guards: scenario O075, window groups of a tier are not described.
TEST(kv_events, o075_window_groups_are_not_described) {
  log_of_sequence one(1, 3, {window(8)});
  one.describe(3);
  EXPECT_EQ(one.log.num_described(), 0U);
  auto expected = placeholder(host, h(0));
  expected.group_kind = group_kind::sliding_window;
  expected.window_tokens = 8;
  EXPECT_EQ(one.stored({k(0)}), std::vector<kv_event>{expected});
}

/// A source with one waiting event of a medium, which counts how often it is asked.
struct counting_source final : kv_event_source {
  explicit counting_source(std::string medium) { waiting.emplace_back().medium = std::move(medium); }
  std::vector<kv_event> take() override {
    ++num_asked;
    return std::exchange(waiting, {});
  }
  std::vector<kv_event> waiting;
  int num_asked = 0;
};

// Guards: scenario O076, the events of several tiers come in the order of the tiers, each of which is asked once.
TEST(kv_events, o076_one_source_after_the_other) {
  counting_source primary("primary"), first("first"), second("second");
  const std::array<kv_event_source*, 3> sources{&primary, &first, &second};
  const auto events = take_events(sources);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].medium, "primary");
  EXPECT_EQ(events[1].medium, "first");
  EXPECT_EQ(events[2].medium, "second");
  for (const auto* source : {&primary, &first, &second}) EXPECT_EQ(source->num_asked, 1);
}

// Guards: scenario O077, every form of a tier's event tells its locality.
TEST(kv_events, o077_locality_travels_with_every_event) {
  const kv_place local{"storage", "LOCAL"}, remote{"storage", "REMOTE"};
  log_of_sequence one(1, 1);
  one.describe(1);
  EXPECT_EQ(one.stored({k(0)}, local), std::vector<kv_event>{stored_event(local, hashes(0, 1), {}, {1, 2, 3, 4})});
  log_of_sequence undescribed(1, 1, {full()}, false);
  undescribed.describe(1);
  EXPECT_EQ(undescribed.stored({k(0)}, remote), std::vector<kv_event>{placeholder(remote, h(0))});
  EXPECT_EQ(one.removed({k(0)}, local), std::vector<kv_event>{removed_event(local, hashes(0, 1))});
  one.log.cleared(local);
  EXPECT_EQ(one.log.take().at(0).locality, "LOCAL");
}

// Guards: scenario O078, without self-description nothing is kept and stored events are placeholders.
TEST(kv_events, o078_self_description_can_be_left_out) {
  log_of_sequence one(1, 3, {full()}, false);
  one.describe(3);
  EXPECT_EQ(one.log.num_described(), 0U);
  EXPECT_EQ(one.stored({k(0), k(1), k(2)}),
            (std::vector<kv_event>{placeholder(host, h(0)), placeholder(host, h(1)), placeholder(host, h(2))}));
  EXPECT_EQ(one.removed({k(0), k(1), k(2)}), std::vector<kv_event>{removed_event(host, hashes(0, 3))});
}

// Guards: scenario O079, chunks may be reported in any order; an unknown one gets a placeholder among them.
TEST(kv_events, o079_order_of_chunks_does_not_matter) {
  log_of_sequence one(3, 6);
  one.describe(2);
  EXPECT_EQ(one.stored({k(5), k(99), k(2)}),
            (std::vector<kv_event>{stored_event(host, hashes(3, 6), h(2), counted(13, 12)), placeholder(host, h(99)),
                                   stored_event(host, hashes(0, 3), {}, counted(1, 12))}));
}

// Guards: scenario O080, a removed event of the device carries the group of the evicted block.
TEST(kv_events, o080_removed_blocks_carry_their_group) {
  for (std::uint16_t group = 0; group < 3; ++group) {
    log_of_sequence one(1, 2, {full(), window(8), window(128)});
    one.log.device_stored(one.sequence(group), 0, 2);
    one.log.take();
    one.log.device_removed({group}, h(0));
    one.log.device_removed({group}, h(1));
    const auto events = one.log.take();
    ASSERT_EQ(events.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(events[i].what, event_kind::removed);
      EXPECT_EQ(events[i].medium, "device");
      EXPECT_EQ(events[i].group, group_id{group});
      EXPECT_EQ(events[i].block_hashes, keys{h(static_cast<std::uint8_t>(i))});
    }
  }
}

// Guards: scenario O081, stored events of the device carry the group's number, kind and window, one per registration.
TEST(kv_events, o081_stored_blocks_carry_number_kind_and_window_of_their_group) {
  log_of_sequence one(1, 2, {full(), window(8), window(128)});
  for (std::uint16_t group = 0; group < 3; ++group) one.log.device_stored(one.sequence(group), 0, 2);
  const auto events = one.log.take();
  ASSERT_EQ(events.size(), 3U);
  const std::array<std::optional<std::uint32_t>, 3> windows{std::nullopt, 8, 128};
  for (std::uint16_t group = 0; group < 3; ++group) {
    EXPECT_EQ(events[group].group, group_id{group});
    EXPECT_EQ(events[group].group_kind, group == 0 ? group_kind::full_attention : group_kind::sliding_window);
    EXPECT_EQ(events[group].window_tokens, windows[group]);
    EXPECT_EQ(events[group].block_hashes, hashes(0, 2));
    EXPECT_EQ(events[group].tokens, counted(1, 8));
  }
}

// Guards: scenario O082, a reused prefix is told of again, in the same form, and nothing else changes.
TEST(kv_events, o082_a_reused_prefix_is_announced) {
  log_of_sequence one(1, 4, {full(), full()});
  one.log.device_reused(one.sequence(1), 3);
  auto expected = stored_event({"device", {}}, hashes(0, 3), {}, counted(1, 12));
  expected.group = {1};
  EXPECT_EQ(one.log.take(), std::vector<kv_event>{expected});
  EXPECT_EQ(one.log.num_described(), 0U);
  one.log.device_reused(one.sequence(1), 0);
  EXPECT_EQ(one.log.take(), std::vector<kv_event>{});
}

// Guards: scenario O082 with events off; while disabled nothing at all is recorded or kept.
TEST(kv_events, o082_nothing_is_recorded_while_disabled) {
  kv_event_log log({});
  const auto block_keys = hashes(0, 4);
  const auto of = counted(1, 16);
  const kv_sequence sequence{{}, block_keys, of};
  const std::vector<chunk_key> chunks{k(0), k(1)};
  log.describe(sequence, 0);
  log.stored(host, chunks);
  log.removed(host, chunks);
  log.forget(chunks);
  log.cleared(host);
  log.device_stored(sequence, 0, 3);
  log.device_reused(sequence, 3);
  log.device_removed({}, h(0));
  log.device_cleared();
  EXPECT_EQ(log.take(), std::vector<kv_event>{});
  EXPECT_EQ(log.num_described(), 0U);
}

// Guards: blocks that follow others name their parent, and a cleared device leaves what describes the tier.
TEST(kv_events, device_events_name_the_parent_and_leave_the_side_table) {
  log_of_sequence one(1, 4);
  one.describe(1);
  one.log.device_stored(one.sequence(), 2, 4);
  one.log.device_cleared();
  const auto events = one.log.take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0], stored_event({"device", {}}, hashes(2, 4), h(1), counted(9, 8)));
  EXPECT_EQ(events[1].what, event_kind::cleared);
  EXPECT_EQ(events[1].medium, "device");
  EXPECT_EQ(one.log.num_described(), 1U);
}

// Guards: chunks of several groups that leave together make one event per group; a store that fails leaves no trace.
TEST(kv_events, removal_is_told_per_group_and_failed_stores_are_forgotten) {
  log_of_sequence one(2, 4, {full(), full()});
  one.describe(2, 0);
  one.describe(2, 1);
  const auto events = one.removed({k(1, 0), k(1, 1), k(3, 0)});
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].group, group_id{0});
  EXPECT_EQ(events[0].block_hashes, hashes(0, 4));
  EXPECT_EQ(events[1].group, group_id{1});
  EXPECT_EQ(events[1].block_hashes, hashes(0, 2));
  EXPECT_EQ(one.log.num_described(), 1U);
  one.log.forget(std::vector<chunk_key>{k(3, 1)});
  EXPECT_EQ(one.log.num_described(), 0U);
  EXPECT_EQ(one.log.take(), std::vector<kv_event>{});
}

}  // namespace
}  // namespace sluice
