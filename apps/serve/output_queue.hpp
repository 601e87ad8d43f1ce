// SPDX-License-Identifier: Apache-2.0
//
// From actor threads to the I/O thread: one wake-up for all output of a step.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include <sluice/runtime/runtime.hpp>

#include "http/loop.hpp"

namespace sluice::serve {

using output_event = std::variant<token_delta, request_summary>;

/// Who gets events. Both calls come on the loop's thread.
class output_target {
 public:
  virtual ~output_target() = default;
  virtual void apply(output_event event) = 0;
  /// After the last `apply` of a batch, once per target.
  virtual void flush() = 0;
};

/// Keeps the order of each target's events. The loop outlives it; targets must not own it.
class output_queue : public std::enable_shared_from_this<output_queue> {
 public:
  explicit output_queue(http::loop& loop) : loop_{loop} {}

  /// Any thread; does not wait for the loop.
  void push(std::shared_ptr<output_target> target, output_event event);

 private:
  using entry = std::pair<std::shared_ptr<output_target>, output_event>;

  void drain();

  http::loop& loop_;
  std::mutex mutex_;
  std::vector<entry> pending_;  ///< a drain is posted while it is not empty
};

}  // namespace sluice::serve
