// SPDX-License-Identifier: Apache-2.0
//
// The phases of a request and what moves it between them.
//
//              admit_running ┌──────────┐ preempt, withdraw
//        ┌──────────────────▶│ running  │───────┐
//   ┌────┴────┐              └────▲─────┘       ▼
//   │ waiting │                   │ start    waiting
//   └────┬────┘              ┌────┴─────┐ preempt, lose_load, withdraw
//        └──────────────────▶│ loading  │───────┐
//              admit_loading └──────────┘       ▼
//                                            waiting        any but finished ── finish ──▶ finished
#pragma once

#include <optional>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

enum class request_event : std::uint8_t {
  admit_running,  ///< nothing to load
  admit_loading,  ///< waits on one load or more
  start,          ///< all its loads have settled and a step computes it
  preempt,        ///< by capacity or a reset; of loading requests only those whose loads have settled
  lose_load,      ///< a load failed or became stale
  withdraw,       ///< the plan that admitted it was withdrawn
  finish,
};

/// The phase after `event`, or nothing where the event is not allowed.
std::optional<request_phase> next_phase(request_phase phase, request_event event);

}  // namespace sluice::inline v0
