// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/engine_histograms.hpp>

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::map<std::string, prometheus::ClientMetric::Histogram> series_of(const engine_histograms& histograms) {
  std::map<std::string, prometheus::ClientMetric::Histogram> all;
  for (const auto& family : histograms.collect())
    for (const auto& metric : family.metric) {
      auto key = family.name;
      for (const auto& label : metric.label) key += " " + label.value;
      EXPECT_TRUE(all.emplace(key, metric.histogram).second) << key;
    }
  return all;
}

// Guards: a value on a bound belongs below it, one beyond the last bound is counted still, buckets are cumulative.
TEST(engine_histograms, buckets_are_cumulative_and_closed_above) {
  const std::vector<double> bounds{1, 2, 4};
  live_histogram histogram(bounds);
  for (const double value : {0.5, 1.0, 1.5, 4.0, 100.0}) histogram.observe(value);
  const auto seen = histogram.collect();
  EXPECT_EQ(seen.sample_count, 5U);
  EXPECT_EQ(seen.sample_sum, 107);
  ASSERT_EQ(seen.bucket.size(), 3U);
  EXPECT_EQ(seen.bucket[0].cumulative_count, 2U);
  EXPECT_EQ(seen.bucket[1].cumulative_count, 3U);
  EXPECT_EQ(seen.bucket[2].cumulative_count, 4U);
  EXPECT_EQ(seen.bucket[2].upper_bound, 4);
}

// O089. Guards: before anything happened every series is there, and empty.
TEST(engine_histograms, o089_every_series_exists_from_the_start) {
  const engine_histograms histograms;
  const auto all = series_of(histograms);
  EXPECT_EQ(all.size(), 11U);
  for (const auto& [name, histogram] : all) {
    EXPECT_EQ(histogram.sample_count, 0U) << name;
    EXPECT_EQ(histogram.sample_sum, 0) << name;
    double last = 0;
    for (const auto& bucket : histogram.bucket) EXPECT_GT(bucket.upper_bound, std::exchange(last, bucket.upper_bound)) << name;
  }
}

// O092: two loads of 16 and 8 bytes in 1.5 s, two stores of 1 and 2 bytes in 0.3 s. Guards: what was observed is under
// its own labels, and nowhere else.
TEST(engine_histograms, o092_observations_are_under_their_own_labels) {
  engine_histograms histograms;
  histograms.transfer_took(transfer_direction::load, 16, milliseconds{1000});
  histograms.transfer_took(transfer_direction::load, 8, milliseconds{500});
  histograms.transfer_took(transfer_direction::store, 1, milliseconds{100});
  histograms.transfer_took(transfer_direction::store, 2, milliseconds{200});
  histograms.request_was_queued(milliseconds{7});
  histograms.tier_lookup_took(microseconds{3});
  std::map<std::string, std::pair<std::uint64_t, double>> expected{
      {"sluice_transfer_seconds load host", {2, 1.5}},  {"sluice_transfer_bytes load host", {2, 24}},
      {"sluice_transfer_seconds store host", {2, 0.3}}, {"sluice_transfer_bytes store host", {2, 3}},
      {"sluice_queue_seconds", {1, 0.007}},             {"sluice_tier_lookup_seconds host", {1, 3e-6}}};
  const std::map<step_part, std::string> parts{{step_part::apply, "apply"}, {step_part::plan, "plan"},
                                               {step_part::boundary, "boundary"}, {step_part::execute, "execute"},
                                               {step_part::commit, "commit"}};
  int num_times = 0;
  for (const auto& [part, label] : parts) {
    ++num_times;
    for (int i = 0; i < num_times; ++i) histograms.step_part_took(part, microseconds{10});
    expected["sluice_step_seconds " + label] = {num_times, num_times * 1e-5};
  }
  const auto all = series_of(histograms);
  ASSERT_EQ(all.size(), expected.size());
  for (const auto& [name, values] : expected) {
    ASSERT_TRUE(all.contains(name)) << name;
    EXPECT_EQ(all.at(name).sample_count, values.first) << name;
    EXPECT_NEAR(all.at(name).sample_sum, values.second, 1e-9) << name;
  }
}

// Guards: whoever reads while the engine writes sees counts that only grow, and a bucket never above the whole.
TEST(engine_histograms, a_reader_sees_counts_that_only_grow) {
  const std::vector<double> bounds{1};
  live_histogram histogram(bounds);
  std::atomic<bool> has_started{false};
  std::thread writer([&] {
    for (int i = 0; i < 200000; ++i) {
      histogram.observe(i % 2);
      if (i == 100) has_started = true;
    }
  });
  while (!has_started) std::this_thread::yield();
  std::uint64_t last = 0;
  while (last < 150000) {
    const auto seen = histogram.collect();
    ASSERT_GE(seen.sample_count, last);
    ASSERT_LE(seen.bucket[0].cumulative_count, seen.sample_count);
    last = seen.sample_count;
  }
  writer.join();
  EXPECT_EQ(histogram.collect().sample_count, 200000U);
}

}  // namespace
}  // namespace sluice
