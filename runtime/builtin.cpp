// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/builtin.hpp>

#include <sluice/actors/executor/tiny/tiny_model.hpp>
#include <sluice/actors/request/byte_tokenizer.hpp>
#include <sluice/gpu/host/host_device.hpp>

namespace sluice::inline v0 {

std::unique_ptr<gpu::device> make_host_device(const host_device_options& options) {
  return gpu::host::make_device({options.load_gib_per_s, options.store_gib_per_s, options.copy_latency, 0});
}

std::unique_ptr<model_executor> make_tiny_model(const tiny_options& options) {
  tiny_model_options model;
  model.seed = options.seed;
  model.min_step = options.min_step;
  model.window_tokens = options.window_tokens;
  return std::make_unique<tiny_model>(std::move(model));
}

std::shared_ptr<const tokenizer> make_byte_tokenizer() { return std::make_shared<byte_tokenizer>(); }

}  // namespace sluice::inline v0
