// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <prometheus/metric_family.h>

#include <sluice/actors/scheduler/engine_observer.hpp>

namespace sluice::inline v0 {

/// Counts values by size, for one writing thread. Readers on other threads never hold it up; one that comes in between
/// may miss the newest value in the sum or in the counts.
class live_histogram {
 public:
  /// `bounds` are the largest values of the buckets, rising; what is larger still goes into one more. They must outlive
  /// the histogram.
  explicit live_histogram(const std::vector<double>& bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  /// The one writer only.
  void observe(double value);
  prometheus::ClientMetric::Histogram collect() const;

 private:
  const std::vector<double>& bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;  // not cumulative
  std::atomic<double> sum_{0};
};

/// What the scheduler measures, for a scrape: distributions of times and sizes since the start. Written by the
/// scheduler's thread.
class engine_histograms final : public engine_observer {
 public:
  engine_histograms();

  void step_part_took(step_part part, std::chrono::nanoseconds time) override;
  void request_was_queued(std::chrono::nanoseconds time) override;
  void tier_lookup_took(std::chrono::nanoseconds time) override;
  void transfer_took(transfer_direction direction, std::uint64_t bytes, std::chrono::nanoseconds time) override;

  /// Any thread. All series exist from the start.
  std::vector<prometheus::MetricFamily> collect() const;

 private:
  struct transfers {
    live_histogram seconds, bytes;
  };

  std::array<live_histogram, 5> step_parts_;
  live_histogram queue_, lookups_;
  transfers loads_, stores_;
};

}  // namespace sluice::inline v0
