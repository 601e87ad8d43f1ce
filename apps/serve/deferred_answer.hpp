// SPDX-License-Identifier: Apache-2.0
//
// Answers that wait for the engine.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "http/json.hpp"
#include "serve/service.hpp"

namespace sluice::serve {

/// An answer that comes from another thread, or 503 after `service_options::control_timeout`.
class deferred_answer : public std::enable_shared_from_this<deferred_answer> {
 public:
  /// Loop thread. `own_wait` is what the client allows the engine beyond the timeout.
  static std::shared_ptr<deferred_answer> start(service& api, http::exchange_ptr call,
                                                std::chrono::milliseconds own_wait = {});

  /// Any thread. `make_body` runs on the loop's thread, unless it comes too late. The status is 200; an
  /// http::api_error that it throws is answered as it says.
  void complete(std::function<http::json()> make_body);

 private:
  void answer(http::response ready);
  http::exchange_ptr forget();

  http::loop* loop_ = nullptr;
  http::exchange_ptr call_;  ///< null once answered or gone
  http::timer timeout_;
};

}  // namespace sluice::serve
