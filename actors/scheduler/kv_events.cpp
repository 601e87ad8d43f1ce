// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/kv_events.hpp>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace sluice::inline v0 {

namespace {

const kv_place device_place{"device", {}};

}  // namespace

std::vector<kv_event> take_events(std::span<kv_event_source* const> sources) {
  std::vector<kv_event> events;
  for (auto* source : sources) std::ranges::move(source->take(), std::back_inserter(events));
  return events;
}

kv_event_log::kv_event_log(options settings) : settings_(std::move(settings)) {}

std::vector<kv_event> kv_event_log::take() { return std::exchange(events_, {}); }

void kv_event_log::describe(const kv_sequence& sequence, std::uint32_t chunk) {
  if (!settings_.is_enabled || !settings_.is_self_described) return;
  if (spec(sequence.group).attention != kv_group_spec::kind::full_attention) return;
  const auto first = chunk * settings_.blocks_per_chunk, end = first + settings_.blocks_per_chunk;
  const auto [at, is_new] = descriptions_.try_emplace({sequence.block_keys[end - 1], sequence.group});
  if (is_new) at->second = describe_blocks(sequence, first, end);
}

void kv_event_log::stored(const kv_place& place, std::span<const chunk_key> chunks) {
  if (!settings_.is_enabled) return;
  for (const auto& chunk : chunks) {
    const auto found = descriptions_.find(chunk);
    record_stored(place, chunk.group,
                  found == descriptions_.end() ? description{{chunk.content}, {}, {}, 0} : found->second);
  }
}

void kv_event_log::removed(const kv_place& place, std::span<const chunk_key> chunks) {
  if (!settings_.is_enabled) return;
  const auto first_event = events_.size();
  for (const auto& chunk : chunks) {
    auto event = std::find_if(events_.begin() + static_cast<std::ptrdiff_t>(first_event), events_.end(),
                              [&](const kv_event& recorded) { return recorded.group == chunk.group; });
    auto& hashes = (event == events_.end() ? record(kv_event::kind::removed, place, chunk.group) : *event).block_hashes;
    const auto found = descriptions_.find(chunk);
    if (found == descriptions_.end()) {
      hashes.push_back(chunk.content);
    } else {
      std::ranges::copy(found->second.block_hashes, std::back_inserter(hashes));
      descriptions_.erase(found);
    }
  }
}

void kv_event_log::forget(std::span<const chunk_key> chunks) {
  for (const auto& chunk : chunks) descriptions_.erase(chunk);
}

void kv_event_log::cleared(const kv_place& place) {
  if (!settings_.is_enabled) return;
  descriptions_.clear();
  record_cleared(place);
}

void kv_event_log::device_stored(const kv_sequence& sequence, std::uint32_t first_block, std::uint32_t end_block) {
  if (!settings_.is_enabled || first_block >= end_block) return;
  record_stored(device_place, sequence.group, describe_blocks(sequence, first_block, end_block));
}

void kv_event_log::device_removed(group_id group, const content_key& block) {
  if (!settings_.is_enabled) return;
  record(kv_event::kind::removed, device_place, group).block_hashes.push_back(block);
}

void kv_event_log::device_cleared() {
  if (settings_.is_enabled) record_cleared(device_place);
}

kv_event_log::description kv_event_log::describe_blocks(const kv_sequence& sequence, std::uint32_t first_block,
                                                        std::uint32_t end_block) const {
  const auto block_size = spec(sequence.group).block_size;
  assert(end_block <= sequence.block_keys.size() && std::size_t{end_block} * block_size <= sequence.tokens.size());
  const auto keys = sequence.block_keys.subspan(first_block, end_block - first_block);
  const auto tokens = sequence.tokens.subspan(std::size_t{first_block} * block_size, keys.size() * block_size);
  description found{{keys.begin(), keys.end()}, {}, {tokens.begin(), tokens.end()}, block_size};
  if (first_block > 0) found.parent = sequence.block_keys[first_block - 1];
  return found;
}

kv_event& kv_event_log::record(kv_event::kind what, const kv_place& place, group_id group) {
  auto& event = events_.emplace_back();
  event.what = what;
  event.medium = place.medium;
  event.locality = place.locality;
  event.group = group;
  event.group_kind = spec(group).attention;
  if (event.group_kind == kv_group_spec::kind::sliding_window) event.window_tokens = spec(group).window_tokens;
  return event;
}

void kv_event_log::record_stored(const kv_place& place, group_id group, description what) {
  auto& event = record(kv_event::kind::stored, place, group);
  event.block_hashes = std::move(what.block_hashes);
  event.parent = what.parent;
  event.tokens = std::move(what.tokens);
  event.block_size = what.block_size;
}

void kv_event_log::record_cleared(const kv_place& place) {
  auto& event = events_.emplace_back();
  event.what = kv_event::kind::cleared;
  event.medium = place.medium;
  event.locality = place.locality;
}

}  // namespace sluice::inline v0
