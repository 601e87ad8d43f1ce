// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// The requests that have not ended, for the threads outside the actors. Any thread.
class open_requests {
 public:
  explicit open_requests(std::size_t limit) : limit_(limit) {}

  /// Takes a place; nothing when all are taken.
  std::optional<request_id> reserve() {
    std::lock_guard lock(mutex_);
    if (actors_.size() >= limit_) return std::nullopt;
    const request_id id{++last_id_};
    actors_.emplace(id, request_actor{});
    return id;
  }
  /// A request that ended in the meantime is not put back.
  void set(request_id id, request_actor actor) {
    std::lock_guard lock(mutex_);
    if (auto found = actors_.find(id); found != actors_.end()) found->second = std::move(actor);
  }
  void remove(request_id id) {
    std::lock_guard lock(mutex_);
    actors_.erase(id);
  }
  request_actor find(request_id id) const {
    std::lock_guard lock(mutex_);
    auto found = actors_.find(id);
    return found == actors_.end() ? request_actor{} : found->second;
  }
  std::vector<std::pair<request_id, request_actor>> all() const {
    std::lock_guard lock(mutex_);
    return {actors_.begin(), actors_.end()};
  }
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return actors_.size();
  }

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<request_id, request_actor> actors_;
  std::uint64_t last_id_ = 0;
};

}  // namespace sluice::inline v0
