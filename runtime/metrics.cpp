// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/metrics.hpp>

#include <utility>
#include <vector>

#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sluice/runtime/metric_families.hpp>

namespace sluice::inline v0 {

namespace {

using clock = std::chrono::steady_clock;

double seconds_between(clock::time_point from, clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

const prometheus::Histogram::BucketBoundaries long_times = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                            0.5,   1,      2.5,   5,    10,    30,   60,  120};
const prometheus::Histogram::BucketBoundaries short_times = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                             0.05,   0.1,   0.25,   0.5,   1};

}  // namespace

struct runtime_metrics::histograms {
  prometheus::Registry registry;
  prometheus::Histogram& first_token;
  prometheus::Histogram& per_token;
  prometheus::Histogram& request;

  histograms()
      : first_token(add("sluice_time_to_first_token_seconds", "From acceptance to the first token.", long_times)),
        per_token(add("sluice_time_per_output_token_seconds",
                      "Time between the first and the last token, per token after the first.", short_times)),
        request(add("sluice_request_seconds", "From acceptance to the end of a request.", long_times)) {}

  prometheus::Histogram& add(const char* name, const char* help, const prometheus::Histogram::BucketBoundaries& at) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, at);
  }
};

runtime_metrics::runtime_metrics(const engine_status& status)
    : status_(status), histograms_(std::make_shared<histograms>()) {}
runtime_metrics::~runtime_metrics() = default;

std::string runtime_metrics::text() const {
  auto families = make_metric_families(status_.numbers());
  for (auto& family : status_.histograms().collect()) families.push_back(std::move(family));
  for (auto& family : histograms_->registry.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

namespace {

template <class Histograms>
class timed_sink final : public request_sink {
 public:
  timed_sink(std::shared_ptr<request_sink> sink, std::shared_ptr<Histograms> histograms)
      : sink_(std::move(sink)), histograms_(std::move(histograms)), accepted_(clock::now()) {}

  void delta(const token_delta& delta) override {
    last_ = clock::now();
    if (num_tokens_ == 0 && !delta.tokens.empty()) {
      first_ = last_;
      histograms_->first_token.Observe(seconds_between(accepted_, first_));
    }
    num_tokens_ += delta.tokens.size();
    sink_->delta(delta);
  }

  void finished(const request_summary& summary) override {
    histograms_->request.Observe(seconds_between(accepted_, clock::now()));
    if (num_tokens_ > 1)
      histograms_->per_token.Observe(seconds_between(first_, last_) / static_cast<double>(num_tokens_ - 1));
    sink_->finished(summary);
  }

 private:
  std::shared_ptr<request_sink> sink_;
  std::shared_ptr<Histograms> histograms_;
  clock::time_point accepted_, first_, last_;
  std::size_t num_tokens_ = 0;
};

}  // namespace

std::shared_ptr<request_sink> runtime_metrics::timed(std::shared_ptr<request_sink> sink) {
  return std::make_shared<timed_sink<histograms>>(std::move(sink), histograms_);
}

}  // namespace sluice::inline v0
