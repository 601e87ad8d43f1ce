// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <support/test_engine.hpp>

namespace sluice::simulation {

/// Looks at the messages of each step boundary as they wait in mailboxes, and says whether the flush is what the
/// boundary asked for: the stores of preempted requests and those under re-used blocks, no more, no less, and no load.
class boundary_monitor {
 public:
  explicit boundary_monitor(testing::test_engine& engine) : engine_(engine) {}

  void look() {
    if (const auto boundary = engine_.system.peek<step_boundary>(engine_.handler)) note(*boundary);
    if (const auto flush = engine_.system.peek<flush_stores>(engine_.storer)) check(*flush);
  }

  std::vector<std::string> take_faults() { return std::exchange(faults_, {}); }

 private:
  void note(const step_boundary& boundary) {
    auto& wanted = wanted_[boundary.step];
    wanted = boundary.reused;
    for (const auto& pending : boundary.pending)
      if (pending.direction == transfer_direction::store) wanted.push_back(pending.id);
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  }

  void check(const flush_stores& flush) {
    const auto known = wanted_.find(flush.step);
    if (known == wanted_.end()) return;  // a turn may take an answer and then the boundary, which nobody saw
    auto asked = flush.ids;
    std::sort(asked.begin(), asked.end());
    if (asked != known->second)
      faults_.push_back("the flush of step " + std::to_string(flush.step.value) + " asks for " + list(asked) +
                        ", its boundary needs " + list(known->second));
  }

  static std::string list(const std::vector<transfer_id>& ids) {
    std::string text = "(";
    for (const auto id : ids) text += " " + std::to_string(id.value);
    return text + " )";
  }

  testing::test_engine& engine_;
  std::map<step_id, std::vector<transfer_id>> wanted_;
  std::vector<std::string> faults_;
};

}  // namespace sluice::simulation
