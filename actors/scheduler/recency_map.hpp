// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// A bounded map from chunk keys, ordered by the last refresh. When it is full a new key takes the place of the one
/// that was refreshed the longest ago, without an allocation. All operations take constant time.
template <class Value>
class recency_map {
 public:
  /// `capacity` entries, at least one.
  explicit recency_map(std::size_t capacity) : capacity_(capacity) { assert(capacity > 0); }

  std::size_t size() const { return index_.size(); }

  /// Null if `key` is not there. Changes no order.
  const Value* find(const chunk_key& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->second;
  }

  /// The value of `key`, from now on the most recent one; of a new key it is `Value{}`. Valid until the next change.
  Value& refresh(const chunk_key& key) {
    if (const auto found = index_.find(key); found != index_.end()) {
      entries_.splice(entries_.end(), entries_, found->second);
    } else if (index_.size() < capacity_) {
      index_.emplace(key, entries_.emplace(entries_.end(), key, Value{}));
    } else {
      auto node = index_.extract(entries_.front().first);
      entries_.splice(entries_.end(), entries_, entries_.begin());
      entries_.back() = {key, Value{}};
      node.key() = key;
      index_.insert(std::move(node));
    }
    return entries_.back().second;
  }

  void erase(const chunk_key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    entries_.erase(found->second);
    index_.erase(found);
  }

  void clear() {
    index_.clear();
    entries_.clear();
  }

 private:
  using entry_list = std::list<std::pair<chunk_key, Value>>;

  std::size_t capacity_;
  entry_list entries_;  // oldest first
  std::unordered_map<chunk_key, typename entry_list::iterator> index_;
};

}  // namespace sluice::inline v0
