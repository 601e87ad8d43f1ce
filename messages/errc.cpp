// SPDX-License-Identifier: Apache-2.0
#include <sluice/messages/errc.hpp>

namespace sluice::inline v0 {

std::string_view to_string(errc code) {
  switch (code) {
    case errc::none: return "none";
    case errc::invalid_argument: return "invalid_argument";
    case errc::prompt_empty: return "prompt_empty";
    case errc::prompt_too_long: return "prompt_too_long";
    case errc::queue_full: return "queue_full";
    case errc::shutting_down: return "shutting_down";
    case errc::asleep: return "asleep";
    case errc::insufficient_memory: return "insufficient_memory";
    case errc::out_of_blocks: return "out_of_blocks";
    case errc::unknown_request: return "unknown_request";
    case errc::older_load_pending: return "older_load_pending";
    case errc::flush_timed_out: return "flush_timed_out";
    case errc::transfer_actor_lost: return "transfer_actor_lost";
    case errc::transfer_timed_out: return "transfer_timed_out";
    case errc::transfers_unsettled: return "transfers_unsettled";
    case errc::device_failed: return "device_failed";
    case errc::model_failed: return "model_failed";
    case errc::engine_failed: return "engine_failed";
    case errc::invariant_violated: return "invariant_violated";
  }
  return "unknown";
}

std::string_view describe(errc code) {
  switch (code) {
    case errc::none: return "No error.";
    case errc::invalid_argument: return "A value is outside what is allowed.";
    case errc::prompt_empty: return "The prompt has no tokens.";
    case errc::prompt_too_long: return "Prompt and requested output do not fit the model's context.";
    case errc::queue_full: return "Too many requests are waiting.";
    case errc::shutting_down: return "The server is shutting down.";
    case errc::asleep: return "The engine is asleep.";
    case errc::insufficient_memory: return "There is too little memory for the configured tiers.";
    case errc::out_of_blocks: return "The request cannot fit beside blocks that are quarantined.";
    case errc::unknown_request: return "There is no request with this id.";
    case errc::older_load_pending: return "A preempted request waits on a load that an earlier step created.";
    case errc::flush_timed_out: return "Stores of preempted requests did not settle in time.";
    case errc::transfer_actor_lost: return "The load or store actor died while a step boundary was open.";
    case errc::transfer_timed_out: return "A transfer did not settle in time.";
    case errc::transfers_unsettled: return "Transfers had not settled when the runtime stopped.";
    case errc::device_failed: return "The device reported an error.";
    case errc::model_failed: return "The model executor reported an error.";
    case errc::engine_failed: return "An actor of the engine died.";
    case errc::invariant_violated: return "The engine found its own state inconsistent.";
  }
  return "Unknown error.";
}

}  // namespace sluice::inline v0
