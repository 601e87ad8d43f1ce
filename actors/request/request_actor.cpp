// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/request/request_actor.hpp>

#include <utility>

namespace sluice::inline v0 {

request_actor_state::request_actor_state(request_actor::pointer self_pointer, scheduler_actor scheduler_handle,
                                         request_setup request)
    : self(self_pointer), scheduler(std::move(scheduler_handle)), setup(std::move(request)), text(setup.stop) {}

request_actor_state::~request_actor_state() {
  if (has_ended) return;
  compat::anon_mail(abort_request{setup.params.id}).send(scheduler);
  if (!std::exchange(has_told_end, true)) {
    const error failure{errc::engine_failed, "the request's actor ended: its sink threw"};
    try {
      setup.sink->finished({finish_reason::error, failure, {}, {}});
    } catch (...) {  // once is enough
    }
  }
  setup.on_end(setup.params.id);
}

request_actor::behavior_type request_actor_state::make_behavior() {
  compat::mail(self, submit_request{setup.params}).send(scheduler);
  return {
      [this](const request_tokens& message) {
        if (text.is_stopped()) return;  // overshoot
        setup.sink->delta(take(message.tokens));
        if (text.is_stopped())
          compat::mail(self, finish_request{setup.params.id, finish_reason::stop, num_output_tokens}).send(scheduler);
      },
      [this](const request_finished& message) { finish(message); },
      [this](const client_gone&) { compat::mail(self, abort_request{setup.params.id}).send(scheduler); },
  };
}

token_delta request_actor_state::take(const std::vector<token_id>& tokens) {
  token_delta delta;
  for (auto token : tokens) {
    delta.tokens.push_back(token);
    delta.text += text.add(setup.text->bytes(token));
    if (text.is_stopped()) break;
  }
  num_output_tokens += static_cast<std::uint32_t>(delta.tokens.size());
  return delta;
}

void request_actor_state::finish(const request_finished& message) {
  if (!text.is_stopped() && !message.tokens.empty()) setup.sink->delta(take(message.tokens));
  request_summary summary{message.reason, {message.code, message.message}, {}, message.usage};
  if (text.is_stopped() && message.reason != finish_reason::error)
    summary.reason = finish_reason::stop;
  else
    summary.text = text.flush();
  summary.usage.num_output_tokens = num_output_tokens;
  has_told_end = true;
  setup.sink->finished(summary);
  has_ended = true;
  setup.on_end(setup.params.id);
  self->quit();
}

}  // namespace sluice::inline v0
