// SPDX-License-Identifier: Apache-2.0
#include "serve/process.hpp"

#include <algorithm>
#include <csignal>
#include <future>
#include <memory>
#include <thread>

#include <spdlog/spdlog.h>

namespace sluice::serve {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds abort_grace{5'000};  ///< for aborted requests to report their end
constexpr milliseconds close_grace{2'000};  ///< for clients to take their last bytes
constexpr milliseconds hurried_settle{1'000};
constexpr milliseconds longest_settle{10'000};

/// Waits for open requests on the loop's thread. serving -> draining -> aborting -> drained.
class drain {
 public:
  drain(http::loop& loop, http::server& server, service& api, milliseconds timeout)
      : loop_{loop}, server_{server}, api_{api}, timeout_{timeout} {}

  void on_signal(int number) {
    switch (phase_) {
      case phase::serving:
        spdlog::info("signal {}: draining, {} open requests", number, api_.active.size());
        return begin();
      case phase::draining:
      case phase::aborting:
      case phase::drained:
        is_hurried_ = true;
        loop_.unwatch_signals();
        return abort_open();
    }
  }

  /// True if a second signal came.
  std::future<bool> drained() { return drained_.get_future(); }

 private:
  enum class phase { serving, draining, aborting, drained };

  void begin() {
    phase_ = phase::draining;
    api_.engine.begin_drain();
    server_.begin_drain();
    timer_ = loop_.after(timeout_, [this] { abort_open(); });
    api_.active.when_none([this] { finish(); });
  }

  void abort_open() {
    if (phase_ != phase::draining) return;
    phase_ = phase::aborting;
    spdlog::warn("aborting {} open requests", api_.active.size());
    timer_ = loop_.after(abort_grace, [this] { finish(); });
    api_.active.abort_all();
  }

  void finish() {
    if (phase_ == phase::drained) return;
    phase_ = phase::drained;
    timer_.reset();
    drained_.set_value(is_hurried_);
  }

  http::loop& loop_;
  http::server& server_;
  service& api_;
  milliseconds timeout_;
  phase phase_ = phase::serving;
  bool is_hurried_ = false;
  http::timer timer_;
  std::promise<bool> drained_;
};

serve_result stop_engine(runtime& engine, milliseconds deadline) {
  const auto stopped = engine.stop(deadline);
  if (stopped) return serve_result::clean;
  spdlog::error("stop: {}: {}", to_string(stopped.error().code), stopped.error().message);
  return stopped.error().code == errc::transfers_unsettled ? serve_result::transfers_unsettled
                                                           : serve_result::engine_failed;
}

}  // namespace

serve_result serve_until_signalled(http::loop& loop, http::server& server, service& api, milliseconds shutdown_timeout,
                                   const std::function<void()>& on_ready) {
  drain ending{loop, server, api, shutdown_timeout};
  auto drained = ending.drained();
  loop.watch_signals({SIGTERM, SIGINT}, [&ending](int number) { ending.on_signal(number); });
  loop.post([&server] { server.start(); });
  std::thread io{[&loop] { loop.run(); }};
  on_ready();

  const bool is_hurried = drained.get();
  const auto settle = std::clamp(shutdown_timeout, hurried_settle, longest_settle);
  const auto result = stop_engine(api.engine, is_hurried ? hurried_settle : settle);

  std::promise<void> closed;
  loop.post([&server, &closed] { server.close(close_grace, [&closed] { closed.set_value(); }); });
  closed.get_future().wait();
  loop.stop();
  io.join();
  return result;
}

}  // namespace sluice::serve
