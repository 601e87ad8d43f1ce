// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <sluice/runtime/runtime.hpp>

namespace sluice::inline v0 {

/// What is wrong with a request, or nothing. Errors: prompt_empty, prompt_too_long (says both lengths),
/// invalid_argument (which field, what was given, what is allowed).
std::optional<error> check_request(const generation_request& request, const runtime_info& info);

}  // namespace sluice::inline v0
