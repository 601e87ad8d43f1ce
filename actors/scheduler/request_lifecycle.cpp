// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/request_lifecycle.hpp>

namespace sluice::inline v0 {

std::optional<request_phase> next_phase(request_phase phase, request_event event) {
  using enum request_phase;
  switch (event) {
    case request_event::admit_running: return phase == waiting ? std::optional(running) : std::nullopt;
    case request_event::admit_loading: return phase == waiting ? std::optional(loading) : std::nullopt;
    case request_event::start: return phase == loading ? std::optional(running) : std::nullopt;
    case request_event::preempt:
    case request_event::withdraw:
      return phase == running || phase == loading ? std::optional(waiting) : std::nullopt;
    case request_event::lose_load: return phase == loading ? std::optional(waiting) : std::nullopt;
    case request_event::finish: return phase != finished ? std::optional(finished) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace sluice::inline v0
