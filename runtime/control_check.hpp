// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <sluice/runtime/runtime.hpp>

namespace sluice::inline v0 {

/// Of a command that waits for the engine to come to rest.
inline constexpr std::chrono::milliseconds longest_wait = std::chrono::hours{24};

// What is wrong with the options of a command, in words (which option, what was given, what is allowed), or nothing.
std::optional<std::string> check_control(const pause_options& options);
std::optional<std::string> check_control(const sleep_options& options);

}  // namespace sluice::inline v0
