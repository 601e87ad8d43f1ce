// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/step_counters.hpp>

#include <algorithm>
#include <string>

#include <sluice/gpu/preconditions.hpp>

namespace sluice::inline v0::gpu {

status step_counters::record(const stream& on, std::uint64_t step) {
  if (step <= recorded_) {
    return tl::unexpected(usage_error("record_step", "step " + std::to_string(step) + " is not above step " +
                                                         std::to_string(recorded_) + ", which was recorded before"));
  }
  if (recorder_ != nullptr && recorder_ != &on) {
    return tl::unexpected(usage_error(
        "record_step", "steps are recorded on stream '" + recorder_->name() + "', not on '" + on.name() + "'"));
  }
  recorder_ = &on;
  recorded_ = step;
  return {};
}

status step_counters::check_wait(std::uint64_t step) const {
  if (step <= recorded_) return {};
  return tl::unexpected(usage_error(
      "wait_step", "step " + std::to_string(step) + " was not recorded, the last is " + std::to_string(recorded_)));
}

void step_counters::reach(std::uint64_t step) { reached_ = std::max(reached_, step); }

void step_counters::forget(const stream& ended) {
  if (recorder_ == &ended) recorder_ = nullptr;
}

}  // namespace sluice::inline v0::gpu
