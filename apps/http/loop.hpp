// SPDX-License-Identifier: Apache-2.0
//
// The one I/O thread's event loop, without Asio in its interface.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace sluice::http {

/// A pending call; destroying the handle cancels it. Loop thread only.
using timer = std::shared_ptr<void>;

/// Runs functions, timers and socket work on the thread that called `run`. Outlives everything that uses it.
class loop {
 public:
  loop();
  ~loop();
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  /// Runs until `stop`, also while there is nothing to do. Once.
  void run();

  /// Any thread. What was posted and did not run yet is dropped with the loop.
  void stop();

  /// Any thread. Runs `work` on the loop's thread, after what was posted before.
  void post(std::function<void()> work);

  /// Loop thread only.
  [[nodiscard]] timer after(std::chrono::milliseconds delay, std::function<void()> work);

  /// Calls `on_signal` on the loop's thread for each arrival of one of `signals`, from now until the loop ends.
  void watch_signals(const std::vector<int>& signals, std::function<void(int)> on_signal);

  /// Signals have their default effect again. Loop thread only.
  void unwatch_signals();

  boost::asio::io_context& context();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace sluice::http
