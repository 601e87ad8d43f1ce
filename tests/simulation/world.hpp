// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace.hpp"

namespace sluice::simulation {

/// How often something happened, by its name.
using coverage = std::map<std::string, std::uint64_t>;

struct outcome {
  std::vector<std::string> violations;  ///< empty when all was well
  std::size_t num_events = 0;           ///< until the first violation
  std::uint64_t num_steps = 0;
  coverage seen;
};

/// Runs the trace over the real actors, the manual device and the checking executor under a virtual clock. After every
/// event the invariants are checked; at the end everything settles, and then each request's tokens must equal the
/// reference, every command must have been answered, everything must be free and one more request must succeed.
/// Stops at the first violation. A broken assertion ends the process: run traces that may be bad with `run_apart`.
outcome run(const trace& trace);

/// Everything that a run may count, so that what never happened can be named.
const std::vector<std::string>& known_coverage();

}  // namespace sluice::simulation
