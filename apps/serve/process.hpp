// SPDX-License-Identifier: Apache-2.0
//
// The life of a serving process between a started runtime and its end.
#pragma once

#include <chrono>
#include <functional>

#include "http/loop.hpp"
#include "http/server.hpp"
#include "serve/service.hpp"

namespace sluice::serve {

enum class serve_result {
  clean,                ///< everything was served and freed
  transfers_unsettled,  ///< the runtime keeps memory and threads: leave without joining them
  engine_failed,
};

/// Serves until SIGTERM or SIGINT, then drains: `/health` turns 503 and new requests are refused at once, open
/// ones run to their end or, after `shutdown_timeout`, are aborted; then stops the runtime and closes the
/// server. A second signal aborts what is open; a third has its default effect.
/// Blocks the caller. Runs `loop` on a thread of its own. `server` is open and not started; its handler has the
/// endpoints of `api`. `on_ready` is called on the caller's thread once clients are served and signals are watched.
serve_result serve_until_signalled(http::loop& loop, http::server& server, service& api,
                                   std::chrono::milliseconds shutdown_timeout, const std::function<void()>& on_ready);

}  // namespace sluice::serve
