// SPDX-License-Identifier: Apache-2.0
#include "replay/referenced_request.hpp"

#include <string>
#include <utility>

#include "replay/errors.hpp"

namespace sluice::replay {

referenced_request make_referenced(const engine_client& engine, completion_request request) {
  std::vector<int> reference = engine.complete(request).tokens;
  return {std::move(request), std::move(reference)};
}

std::list<live_stream> start_all(const engine_client& engine, const std::vector<referenced_request>& requests) {
  std::list<live_stream> streams;
  for (const referenced_request& one : requests) streams.emplace_back(engine.http(), one.request);
  return streams;
}

void finish_all(std::list<live_stream>& streams, const std::vector<referenced_request>& requests) {
  std::size_t position = 0;
  for (live_stream& stream : streams) {
    const referenced_request& one = requests[position++];
    const std::string reason = difference(one.request, stream.finish(), one.reference);
    if (!reason.empty()) throw replay_error("stream " + std::to_string(position) + ": " + reason);
  }
}

std::uint64_t num_output_tokens(const std::vector<referenced_request>& requests) {
  std::uint64_t sum = 0;
  for (const referenced_request& one : requests) sum += one.reference.size();
  return sum;
}

}  // namespace sluice::replay
