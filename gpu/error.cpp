// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/error.hpp>

namespace sluice::inline v0::gpu {

std::string to_string(const error& err) {
  return err.call + " failed: " + err.text + " (code " + std::to_string(err.code) + ", " +
         std::to_string(err.num_bytes) + " bytes)";
}

}  // namespace sluice::inline v0::gpu
