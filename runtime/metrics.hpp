// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <sluice/actors/request/request_sink.hpp>
#include <sluice/messages/types.hpp>
#include <sluice/runtime/engine_status.hpp>

namespace sluice::inline v0 {

/// The Prometheus view of a runtime: counters, gauges and histograms that the engine publishes, and histograms of
/// request times. Any thread.
class runtime_metrics {
 public:
  explicit runtime_metrics(const engine_status& status);
  ~runtime_metrics();

  /// Text exposition format 0.0.4.
  std::string text() const;

  /// Wraps a client's sink: observes time to first token, time per output token and request time.
  std::shared_ptr<request_sink> timed(std::shared_ptr<request_sink> sink);

 private:
  struct histograms;

  const engine_status& status_;
  std::shared_ptr<histograms> histograms_;
};

}  // namespace sluice::inline v0
