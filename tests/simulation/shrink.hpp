// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "trace.hpp"

namespace sluice::simulation {

/// The shortest trace that can be found which still fails, by leaving out runs of events, from half of them down to one
/// (delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002), then by making
/// numbers smaller and by setting the engine up as usual. `fails` is asked many times; `trace` itself must fail.
trace shrink(trace trace, const std::function<bool(const simulation::trace&)>& fails);

}  // namespace sluice::simulation
