// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace sluice::inline v0::gpu {

/// A failed device call: which call, the device's code and text, and the bytes it was about (0 if none).
struct error {
  std::string call;
  int code = 0;
  std::string text;
  std::size_t num_bytes = 0;
};

/// "call failed: text (code c, n bytes)".
std::string to_string(const error& err);

}  // namespace sluice::inline v0::gpu
