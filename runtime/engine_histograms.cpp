// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/engine_histograms.hpp>

#include <algorithm>
#include <utility>

namespace sluice::inline v0 {

namespace {

const std::vector<double> step_bounds = {1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3,
                                         2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
const std::vector<double> transfer_bounds = {1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3,
                                             0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
const std::vector<double> queue_bounds = {1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1,
                                          0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
constexpr double kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
const std::vector<double> size_bounds = {4 * kib, 16 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib,
                                         64 * mib, 256 * mib, gib, 4 * gib, 16 * gib};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

using label_list = std::vector<prometheus::ClientMetric::Label>;

struct series {
  label_list labels;
  const live_histogram& histogram;
};

prometheus::MetricFamily family(const char* name, const char* help, const std::vector<series>& all) {
  prometheus::MetricFamily made;
  made.name = name;
  made.help = help;
  made.type = prometheus::MetricType::Histogram;
  for (const auto& one : all) {
    auto& metric = made.metric.emplace_back();
    metric.label = one.labels;
    metric.histogram = one.histogram.collect();
  }
  return made;
}

label_list of_host(const char* direction) { return {{"direction", direction}, {"tier", "host"}}; }

}  // namespace

void live_histogram::observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  auto& count = counts_[static_cast<std::size_t>(at)];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  sum_.store(sum_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

prometheus::ClientMetric::Histogram live_histogram::collect() const {
  prometheus::ClientMetric::Histogram out;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    out.sample_count += counts_[i].load(std::memory_order_relaxed);
    out.bucket.push_back({out.sample_count, bounds_[i]});
  }
  out.sample_count += counts_.back().load(std::memory_order_relaxed);
  out.sample_sum = sum_.load(std::memory_order_relaxed);
  return out;
}

engine_histograms::engine_histograms()
    : step_parts_{live_histogram(step_bounds), live_histogram(step_bounds), live_histogram(step_bounds),
                  live_histogram(step_bounds), live_histogram(step_bounds)},
      queue_(queue_bounds), lookups_(step_bounds), loads_{live_histogram(transfer_bounds), live_histogram(size_bounds)},
      stores_{live_histogram(transfer_bounds), live_histogram(size_bounds)} {}

void engine_histograms::step_part_took(step_part part, std::chrono::nanoseconds time) {
  step_parts_[static_cast<std::size_t>(part)].observe(seconds(time));
}

void engine_histograms::request_was_queued(std::chrono::nanoseconds time) { queue_.observe(seconds(time)); }
void engine_histograms::tier_lookup_took(std::chrono::nanoseconds time) { lookups_.observe(seconds(time)); }

void engine_histograms::transfer_took(transfer_direction direction, std::uint64_t bytes, std::chrono::nanoseconds time) {
  auto& histograms = direction == transfer_direction::load ? loads_ : stores_;
  histograms.seconds.observe(seconds(time));
  histograms.bytes.observe(static_cast<double>(bytes));
}

std::vector<prometheus::MetricFamily> engine_histograms::collect() const {
  const auto of_part = [this](step_part part, const char* label) {
    return series{{{"part", label}}, step_parts_[static_cast<std::size_t>(part)]};
  };
  return {family("sluice_step_seconds", "Where the time of a step goes.",
                 {of_part(step_part::apply, "apply"), of_part(step_part::plan, "plan"),
                  of_part(step_part::boundary, "boundary"), of_part(step_part::execute, "execute"),
                  of_part(step_part::commit, "commit")}),
          family("sluice_queue_seconds", "From submission to a request's first step or load.", {{{}, queue_}}),
          family("sluice_tier_lookup_seconds", "Lookups in a tier, each time a request is considered that needs them.",
                 {{{{"tier", "host"}}, lookups_}}),
          family("sluice_transfer_seconds", "From the enqueueing of a transfer that went well to its end.",
                 {{of_host("load"), loads_.seconds}, {of_host("store"), stores_.seconds}}),
          family("sluice_transfer_bytes", "Sizes of transfers that went well.",
                 {{of_host("load"), loads_.bytes}, {of_host("store"), stores_.bytes}})};
}

}  // namespace sluice::inline v0
