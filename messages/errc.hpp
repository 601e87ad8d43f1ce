// SPDX-License-Identifier: Apache-2.0
//
// Every error of the system, one enum, a sentence each. Free of CAF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::inline v0 {

enum class errc : std::uint8_t {
  none = 0,
  invalid_argument,        ///< a request or option has a value outside what is allowed
  prompt_empty,            ///< a prompt must have at least one token
  prompt_too_long,         ///< prompt and requested output do not fit the model's context
  queue_full,              ///< more requests wait than the configured bound allows
  shutting_down,           ///< the runtime no longer accepts requests
  asleep,                  ///< the engine sleeps and is told to refuse requests then
  insufficient_memory,     ///< the machine has too little memory for the configured tiers
  out_of_blocks,           ///< a request cannot fit beside blocks that are quarantined
  unknown_request,         ///< no request with that id
  older_load_pending,      ///< a preempted request waits on a load that was not created in this step
  flush_timed_out,         ///< stores did not settle within the flush timeout
  transfer_actor_lost,     ///< the load or store actor died while a boundary was open
  transfer_timed_out,      ///< a transfer did not settle in time
  transfers_unsettled,     ///< stop gave up waiting for transfers; their memory stays allocated
  device_failed,           ///< the device reported an error
  model_failed,            ///< the model executor reported an error
  engine_failed,           ///< an actor of the engine died
  invariant_violated,      ///< the engine found its own state inconsistent
};

/// The enumerator's name, for logs and metrics labels.
std::string_view to_string(errc code);

/// One sentence for a person.
std::string_view describe(errc code);

/// An error with what was given and what is allowed in `message`.
struct error {
  errc code = errc::none;
  std::string message;
};

}  // namespace sluice::inline v0
