// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "trace.hpp"
#include "world.hpp"

namespace sluice::simulation {

/// A trace and a number to know it by.
struct numbered_trace {
  std::uint64_t number = 0;
  trace what;
};

struct apart_options {
  unsigned num_jobs = 1;
  std::chrono::seconds limit{120};  ///< of one run
};

/// Runs traces in processes of their own, several at once, so that a broken assertion or a run that does not end is a
/// violation like any other. `next` gives traces until it gives none; `done` gets each with its outcome, in the order in
/// which they end, and answers whether to go on. The calling process must have one thread. Throws std::system_error
/// when processes cannot be made.
void run_apart(const std::function<std::optional<numbered_trace>()>& next,
               const std::function<bool(const numbered_trace&, const outcome&)>& done, apart_options options);

/// Of one trace.
outcome run_apart(const trace& trace, std::chrono::seconds limit);

}  // namespace sluice::simulation
