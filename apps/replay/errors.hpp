// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace sluice::replay {

/// Why a replay cannot go on or has failed: something differs from what must hold, the server does not answer, or
/// time is up. `what()` is the one line that the user reads.
struct replay_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace sluice::replay
