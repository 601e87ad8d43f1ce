// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>
#include <type_traits>

#include <sluice/messages/errc.hpp>
#include <sluice/messages/types.hpp>
#include <sluice/runtime/engine_histograms.hpp>

namespace sluice::inline v0 {

/// What threads outside the actors may read of the engine at any time. Written by the scheduler (numbers) and the
/// supervisor (failure); neither ever waits for a reader.
class engine_status {
 public:
  /// Scheduler only. A reader that comes in between may see some words old and some new; each for itself is right.
  void publish(const engine_numbers& numbers) {
    const auto words = std::bit_cast<std::array<std::uint64_t, num_words>>(numbers);
    for (std::size_t i = 0; i < num_words; ++i) words_[i].store(words[i], std::memory_order_release);
  }

  engine_numbers numbers() const {
    std::array<std::uint64_t, num_words> words;
    for (std::size_t i = 0; i < num_words; ++i) words[i] = words_[i].load(std::memory_order_acquire);
    return std::bit_cast<engine_numbers>(words);
  }

  /// Scheduler only: what it measures. Readers: `collect`.
  engine_histograms& histograms() { return histograms_; }
  const engine_histograms& histograms() const { return histograms_; }

  /// The first failure stands.
  void fail(error failure) {
    std::lock_guard lock(mutex_);
    if (has_failed_.exchange(true)) return;
    failure_ = std::move(failure);
  }
  bool has_failed() const { return has_failed_.load(); }
  error failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  static_assert(std::is_trivially_copyable_v<engine_numbers> && sizeof(engine_numbers) % sizeof(std::uint64_t) == 0);
  static constexpr std::size_t num_words = sizeof(engine_numbers) / sizeof(std::uint64_t);

  std::array<std::atomic<std::uint64_t>, num_words> words_{};
  engine_histograms histograms_;
  std::atomic<bool> has_failed_{false};
  mutable std::mutex mutex_;  // guards failure_
  error failure_;
};

}  // namespace sluice::inline v0
