// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::http {

/// `prefix` and 32 random hexadecimal digits. Any thread.
std::string unique_id(std::string_view prefix);

}  // namespace sluice::http
