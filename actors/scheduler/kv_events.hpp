// SPDX-License-Identifier: Apache-2.0
//
// KV events: what became findable, or ceased to be, in which cache. A router outside the engine that knows the events
// can send a request where its prefix is.
//
// A device event names blocks by their content keys and describes them wholly. A tier knows chunk keys only; a side
// table keeps what describes a chunk (its blocks' keys, tokens, parent) from the time a request had it in hand until
// the chunk leaves the tier. A stored chunk that nobody described gets a placeholder: its key alone, block size 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

struct kv_event {
  enum class kind : std::uint8_t {
    stored,   ///< the blocks can be found
    removed,  ///< the blocks cannot be found any more
    cleared,  ///< nothing can be found; no group and no blocks are named
  };

  kind what = kind::stored;
  std::string medium;    ///< "device" or the tier's name
  std::string locality;  ///< of the medium, where it has one; may be empty
  group_id group;
  kv_group_spec::kind group_kind = kv_group_spec::kind::full_attention;
  std::optional<std::uint32_t> window_tokens;  ///< of a sliding-window group
  std::vector<content_key> block_hashes;       ///< in order of the sequence

  // Of stored blocks only:
  std::optional<content_key> parent;  ///< the key of the block before the first one, if there is one
  std::vector<token_id> tokens;       ///< of all blocks
  std::uint32_t block_size = 0;       ///< tokens per block; 0: a placeholder, which says nothing of tokens and parent

  friend bool operator==(const kv_event&, const kv_event&) = default;
};

/// Where events can be taken from.
class kv_event_source {
 public:
  virtual ~kv_event_source() = default;

  /// The events since the last call, in the order they happened.
  virtual std::vector<kv_event> take() = 0;
};

/// The events of all sources, each asked once, one source's after the other's.
std::vector<kv_event> take_events(std::span<kv_event_source* const> sources);

/// One request's view of a group: the keys of its full blocks and the tokens of the sequence, both from the first on.
struct kv_sequence {
  group_id group;
  std::span<const content_key> block_keys;
  std::span<const token_id> tokens;
};

/// Where a tier keeps chunks, as events tell it.
struct kv_place {
  std::string medium;
  std::string locality;
};

/// Records the events of the device and of one tier; used by the scheduler. While disabled every call returns at once.
/// Events pile up until they are taken.
class kv_event_log final : public kv_event_source {
 public:
  struct options {
    bool is_enabled = false;
    bool is_self_described = true;  ///< false: no side table, a tier's stored events are placeholders
    std::vector<kv_group_spec> groups;
    std::uint32_t blocks_per_chunk = 1;
  };

  explicit kv_event_log(options settings);

  std::vector<kv_event> take() override;

  // The tier. Its window groups are not described.

  /// `chunk` of `sequence`, all of whose blocks are full, is in the tier or on its way there. Heals a placeholder for
  /// the time to come; records no event.
  void describe(const kv_sequence& sequence, std::uint32_t chunk);
  /// The chunks came to the tier: one event each, in this order.
  void stored(const kv_place& place, std::span<const chunk_key> chunks);
  /// The chunks left the tier: one event per group with the keys of all their blocks. Their descriptions go.
  void removed(const kv_place& place, std::span<const chunk_key> chunks);
  /// The chunks were described but did not get to the tier. No event.
  void forget(std::span<const chunk_key> chunks);
  /// The tier is empty; so is the side table.
  void cleared(const kv_place& place);

  /// Described chunks; never more than there are chunks in the tier or on their way there.
  std::size_t num_described() const { return descriptions_.size(); }
  bool is_described(const chunk_key& chunk) const { return descriptions_.contains(chunk); }

  // The device.

  /// Blocks [first_block, end_block) of `sequence` were indexed together: one event, none if there are no blocks.
  void device_stored(const kv_sequence& sequence, std::uint32_t first_block, std::uint32_t end_block);
  /// A request begins with `num_blocks` blocks that were there already: tells of them again, as of stored ones.
  void device_reused(const kv_sequence& sequence, std::uint32_t num_blocks) { device_stored(sequence, 0, num_blocks); }
  void device_removed(group_id group, const content_key& block);
  void device_cleared();

 private:
  struct description {
    std::vector<content_key> block_hashes;
    std::optional<content_key> parent;
    std::vector<token_id> tokens;
    std::uint32_t block_size = 0;
  };

  const kv_group_spec& spec(group_id group) const { return settings_.groups[group.value]; }
  description describe_blocks(const kv_sequence& sequence, std::uint32_t first_block, std::uint32_t end_block) const;
  kv_event& record(kv_event::kind what, const kv_place& place, group_id group);
  void record_stored(const kv_place& place, group_id group, description what);
  void record_cleared(const kv_place& place);

  options settings_;
  std::unordered_map<chunk_key, description> descriptions_;
  std::vector<kv_event> events_;
};

}  // namespace sluice::inline v0
