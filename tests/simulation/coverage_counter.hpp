// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <support/test_engine.hpp>

#include "world.hpp"

namespace sluice::simulation {

/// Counts what a run has exercised.
class coverage_counter {
 public:
  explicit coverage_counter(testing::test_engine& engine) : engine_(engine) {}

  void happened(std::string_view what) { ++seen_[std::string(what)]; }

  /// After an event: requests that have moved along their lifecycle since the last look, and why those that wait do.
  void look();

  /// What was counted, the engine's own totals included.
  coverage take();

 private:
  testing::test_engine& engine_;
  coverage seen_;
  std::map<request_id, request_phase> phases_;
};

}  // namespace sluice::simulation
