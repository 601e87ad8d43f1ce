// SPDX-License-Identifier: Apache-2.0
//
// A small real transformer with weights from a seed: serves text without a download.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/executor/tiny/tiny_transformer.hpp>

namespace sluice::inline v0 {

struct tiny_model_options {
  std::uint64_t seed = 0;                 ///< of the weights
  std::chrono::milliseconds min_step{0};  ///< least duration of a step
  std::uint32_t max_model_len = 8192;     ///< tokens
  /// Called with the logits of each entry that samples, on the compute stream's thread; for tests.
  std::function<void(const batch_entry&, std::span<const float> logits)> observe_logits;
};

/// Computes on the CPU, as one host function per step: the bound memory must be host memory in one segment. Its
/// tokens are those of byte_tokenizer.
///
/// The next token depends on every KV entry of the sequence. KV and logits are, to the bit, a function of the
/// sequence's tokens and the seed: neither the rest of the batch, nor how a prompt was cut into steps, nor the block
/// ids, nor preemption changes them. Sampling: see tiny_sampler.hpp.
///
/// `batch` is read when the step runs, not at enqueue. The model must outlive every step it enqueued.
class tiny_model : public model_executor {
 public:
  explicit tiny_model(tiny_model_options options = {});

  model_info info() const override;
  kv_spec kv(std::uint32_t block_size) const override;
  void bind(const kv_memory& memory) override;
  gpu::status enqueue(const step_batch& batch, gpu::stream& compute, std::vector<sampled_token>& sampled) override;

 private:
  void run(const batch_entry& entry, std::vector<sampled_token>& sampled);

  const tiny_model_options options_;
  tiny::transformer transformer_;
  tiny::kv_view cache_;
};

}  // namespace sluice::inline v0
