// SPDX-License-Identifier: Apache-2.0
//
// One accepted completion: from the runtime's output to the client's answer.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "http/exchange.hpp"
#include "http/router.hpp"
#include "serve/completion_json.hpp"
#include "serve/completion_request.hpp"
#include "serve/output_queue.hpp"
#include "serve/service.hpp"

namespace sluice::serve {

/// The sink's calls come on actor threads and only queue; everything else happens on the loop's thread. A client
/// that goes away aborts the request; what the runtime still says is then dropped.
class generation final : public request_sink, public output_target, public std::enable_shared_from_this<generation> {
 public:
  generation(service& api, http::exchange_ptr call, const completion_request& asked);

  /// Call once, after the runtime has accepted the request: starts the stream and watches the client.
  void begin(request_id id);

  void delta(const token_delta& output) override;
  void finished(const request_summary& summary) override;

  void apply(output_event event) override;
  void flush() override;

  const std::string& label() const { return label_; }

 private:
  void add(const token_delta& output);
  void finish(const request_summary& summary);
  void finish_stream(const request_summary& summary);
  void finish_answer(const request_summary& summary);
  void write_chunk(const completion_choice& choice);
  void log_end(const request_summary& summary) const;

  service& api_;
  std::weak_ptr<output_queue> outputs_;  ///< weak: the queue holds what it has not delivered
  http::exchange_ptr call_;
  completion_identity identity_;
  std::string label_;
  bool is_stream_;
  bool wants_usage_;
  bool wants_token_ids_;
  request_id id_;
  std::chrono::steady_clock::time_point accepted_;
  const char* client_ = "served";
  std::string text_;              ///< not streamed: the answer so far
  std::vector<token_id> tokens_;  ///< the same, if wanted
};

}  // namespace sluice::serve
