// SPDX-License-Identifier: Apache-2.0
//
// The devices, models and tokenizers that come with Sluice.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/request/tokenizer.hpp>
#include <sluice/gpu/device.hpp>

namespace sluice::inline v0 {

/// Limits that make the host device's copies take visible time; 0 means unlimited.
struct host_device_options {
  double load_gib_per_s = 0;
  double store_gib_per_s = 0;
  std::chrono::milliseconds copy_latency{0};  ///< per transfer, both directions
};

struct tiny_options {
  std::uint64_t seed = 0;                  ///< of the weights
  std::chrono::milliseconds min_step{0};   ///< least duration of a step
  std::uint32_t window_tokens = 0;         ///< what every second layer sees of the past; 0: everything
};

/// Runs without a GPU: real memory, real copies, one worker thread per stream.
std::unique_ptr<gpu::device> make_host_device(const host_device_options& options = {});

/// A small transformer over bytes with weights from a seed; needs a host device and the byte tokenizer. With a window
/// it has two KV groups, and is another model with another name.
std::unique_ptr<model_executor> make_tiny_model(const tiny_options& options = {});

/// One token per byte of UTF-8.
std::shared_ptr<const tokenizer> make_byte_tokenizer();

}  // namespace sluice::inline v0
