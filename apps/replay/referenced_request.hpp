// SPDX-License-Identifier: Apache-2.0
//
// Requests together with the tokens that must come back.
#pragma once

#include <list>
#include <vector>

#include "replay/engine_client.hpp"
#include "replay/live_stream.hpp"

namespace sluice::replay {

struct referenced_request {
  completion_request request;
  std::vector<int> reference;
};

/// Runs `request` by itself. The reference is undisturbed when the server has nothing else to do.
referenced_request make_referenced(const engine_client& engine, completion_request request);

/// All at once, one stream for each.
std::list<live_stream> start_all(const engine_client& engine, const std::vector<referenced_request>& requests);

/// Waits for the end of each. Throws replay_error at the first stream that differs from its reference.
void finish_all(std::list<live_stream>& streams, const std::vector<referenced_request>& requests);

/// Output tokens of all of them.
std::uint64_t num_output_tokens(const std::vector<referenced_request>& requests);

}  // namespace sluice::replay
