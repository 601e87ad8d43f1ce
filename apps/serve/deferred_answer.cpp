// SPDX-License-Identifier: Apache-2.0
#include "serve/deferred_answer.hpp"

#include <utility>

#include "http/api_error.hpp"

namespace sluice::serve {
namespace {

http::response response_of(const std::function<http::json()>& make_body) {
  try {
    http::response ready;
    ready.body = http::dump(make_body());
    return ready;
  } catch (const http::api_error& failure) {
    return http::to_response(failure);
  }
}

}  // namespace

std::shared_ptr<deferred_answer> deferred_answer::start(service& api, http::exchange_ptr call,
                                                        std::chrono::milliseconds own_wait) {
  auto pending = std::make_shared<deferred_answer>();
  pending->loop_ = &api.loop;
  pending->call_ = std::move(call);
  pending->call_->on_gone([pending](http::gone_reason) { pending->forget(); });  // keeps it alive until answered
  pending->timeout_ = api.loop.after(api.options.control_timeout + own_wait, [weak = std::weak_ptr{pending}] {
    const http::api_error late{503, "the engine did not answer in time", "engine_timeout"};
    if (const auto self = weak.lock()) self->answer(http::to_response(late));
  });
  return pending;
}

void deferred_answer::complete(std::function<http::json()> make_body) {
  loop_->post([self = shared_from_this(), make_body = std::move(make_body)] {
    if (!self->call_) return;
    self->answer(response_of(make_body));
  });
}

void deferred_answer::answer(http::response ready) {
  if (const auto call = forget()) call->respond(std::move(ready));
}

http::exchange_ptr deferred_answer::forget() {
  timeout_.reset();
  return std::exchange(call_, nullptr);
}

}  // namespace sluice::serve
