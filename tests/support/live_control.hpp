// SPDX-License-Identifier: Apache-2.0
//
// The control commands of a running runtime, each with its answer.
#pragma once

#include <functional>
#include <utility>

#include "live_runtime.hpp"

namespace sluice::testing {

using control_done = std::function<void(const control_report&)>;

inline control_report pause(runtime& engine, pause_options options) {
  return control_and_wait([&](control_done call) { engine.pause(options, std::move(call)); });
}
inline control_report sleep(runtime& engine, sleep_options options) {
  return control_and_wait([&](control_done call) { engine.sleep(options, std::move(call)); });
}
inline control_report resume(runtime& engine) {
  return control_and_wait([&](control_done call) { engine.resume(std::move(call)); });
}
inline control_report wake(runtime& engine, wake_options options = {}) {
  return control_and_wait([&](control_done call) { engine.wake(options, std::move(call)); });
}

}  // namespace sluice::testing
