// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include <sluice/gpu/device.hpp>

namespace sluice::testing {

/// A stream that runs a function when it is enqueued, and nothing else.
class immediate_stream : public gpu::stream {
 public:
  const std::string& name() const override { return name_; }
  gpu::status enqueue_copies(gpu::copy_batch, gpu::copy_callback) override { return {}; }
  gpu::status enqueue_function(std::function<void()> function) override { return function(), gpu::status{}; }
  gpu::status call_when_reached(gpu::reached_callback) override { return {}; }

 private:
  std::string name_ = "immediate";
};

}  // namespace sluice::testing
