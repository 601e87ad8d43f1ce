// SPDX-License-Identifier: Apache-2.0
#include "serve/engine_error.hpp"

namespace sluice::serve {

http::api_error to_api_error(const error& failure) {
  const std::string code{to_string(failure.code)};
  const auto message = failure.message.empty() ? std::string{describe(failure.code)} : failure.message;
  switch (failure.code) {
    case errc::prompt_empty: return {400, message, code, "prompt"};
    case errc::prompt_too_long: return {400, message, "context_length_exceeded", "prompt"};
    case errc::invalid_argument: return {400, message, "invalid_value"};
    case errc::queue_full:
    case errc::shutting_down:
    case errc::asleep:
    case errc::out_of_blocks:
    case errc::engine_failed: return {503, message, code};
    case errc::none:
    case errc::insufficient_memory:
    case errc::unknown_request:
    case errc::older_load_pending:
    case errc::flush_timed_out:
    case errc::transfer_actor_lost:
    case errc::transfer_timed_out:
    case errc::transfers_unsettled:
    case errc::device_failed:
    case errc::model_failed:
    case errc::invariant_violated: break;
  }
  return http::internal_fault(code + ": " + message);
}

}  // namespace sluice::serve
