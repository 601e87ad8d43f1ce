// SPDX-License-Identifier: Apache-2.0
#include "http/loop.hpp"

#include <optional>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace sluice::http {

namespace asio = boost::asio;

struct loop::state {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  std::optional<asio::signal_set> signals;
  std::function<void(int)> on_signal;

  void wait_for_signal() {
    signals->async_wait([this](boost::system::error_code failure, int number) {
      if (failure) return;
      wait_for_signal();
      on_signal(number);
    });
  }
};

loop::loop() : state_{std::make_unique<state>()} {}
loop::~loop() = default;

void loop::run() { state_->context.run(); }
void loop::stop() { state_->context.stop(); }
void loop::post(std::function<void()> work) { asio::post(state_->context, std::move(work)); }
asio::io_context& loop::context() { return state_->context; }

timer loop::after(std::chrono::milliseconds delay, std::function<void()> work) {
  struct pending {
    asio::steady_timer clock;
    std::function<void()> work;
  };
  auto entry = std::make_shared<pending>(pending{asio::steady_timer{state_->context, delay}, std::move(work)});
  entry->clock.async_wait([weak = std::weak_ptr{entry}](boost::system::error_code failure) {
    const auto alive = weak.lock();
    if (failure || !alive) return;
    const auto call = std::move(alive->work);
    call();
  });
  return entry;
}

void loop::watch_signals(const std::vector<int>& signals, std::function<void(int)> on_signal) {
  state_->signals.emplace(state_->context);
  for (const int number : signals) state_->signals->add(number);
  state_->on_signal = std::move(on_signal);
  state_->wait_for_signal();
}

void loop::unwatch_signals() { state_->signals->clear(); }

}  // namespace sluice::http
