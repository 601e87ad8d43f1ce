// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// New output of a request. `text` never ends inside a UTF-8 character nor inside what may still become a stop
/// string, so it may lag behind `tokens`.
struct token_delta {
  std::vector<token_id> tokens;
  std::string text;
};

/// The one terminal event of a request. `text` is what was held back and belongs to the output.
struct request_summary {
  finish_reason reason = finish_reason::stop;
  error failure;                       ///< code is none unless `reason` is error
  std::string text;
  request_usage usage;                 ///< output tokens count up to a stop string, overshoot is not counted
};

/// Receives one request's output. Called on an actor thread, one call at a time, `finished` last and once;
/// must not block and must not throw. One that throws all the same loses its request: it is aborted, and `finished` is
/// called with engine_failed unless it was that which threw.
class request_sink {
 public:
  virtual ~request_sink() = default;
  virtual void delta(const token_delta& delta) = 0;
  virtual void finished(const request_summary& summary) = 0;
};

}  // namespace sluice::inline v0
