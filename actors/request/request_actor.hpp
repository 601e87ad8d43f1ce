// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sluice/actors/request/request_sink.hpp>
#include <sluice/actors/request/text_assembler.hpp>
#include <sluice/actors/request/tokenizer.hpp>
#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// What a request actor is told at birth.
struct request_setup {
  request_params params;
  std::vector<std::string> stop;
  std::shared_ptr<const tokenizer> text;
  std::shared_ptr<request_sink> sink;
  std::function<void(request_id)> on_end;  ///< called once, after the sink's terminal event
};

/// One request's actor: submits it, turns tokens into text for the sink, ends it at a stop string, and quits after the
/// terminal event. When the sink throws, the request is aborted and its terminal event is tried once.
struct request_actor_state {
  static constexpr const char* name = "request";

  request_actor_state(request_actor::pointer self, scheduler_actor scheduler, request_setup setup);
  /// When the actor ends before its request: as above.
  ~request_actor_state();
  request_actor_state(const request_actor_state&) = delete;
  request_actor_state& operator=(const request_actor_state&) = delete;

  request_actor::behavior_type make_behavior();

  /// Takes tokens up to and including the one that completes a stop string.
  token_delta take(const std::vector<token_id>& tokens);
  void finish(const request_finished& message);

  request_actor::pointer self;
  scheduler_actor scheduler;
  request_setup setup;
  text_assembler text;
  std::uint32_t num_output_tokens = 0;
  bool has_told_end = false;  ///< the sink's terminal event was begun
  bool has_ended = false;
};

}  // namespace sluice::inline v0
