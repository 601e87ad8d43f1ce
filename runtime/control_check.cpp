// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/control_check.hpp>

namespace sluice::inline v0 {

namespace {

std::optional<std::string> check_timeout(std::chrono::milliseconds given) {
  if (given.count() >= 0 && given <= longest_wait) return std::nullopt;
  return "timeout in ms is " + std::to_string(given.count()) + ", allowed is 0 to " +
         std::to_string(longest_wait.count());
}

}  // namespace

std::optional<std::string> check_control(const pause_options& options) { return check_timeout(options.timeout); }

std::optional<std::string> check_control(const sleep_options& options) {
  if (options.level != 1 && options.level != 2)
    return "level is " + std::to_string(options.level) + ", allowed is 1 or 2";
  return check_timeout(options.timeout);
}

}  // namespace sluice::inline v0
