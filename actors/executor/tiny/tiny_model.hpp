// SPDX-License-Identifier: Apache-2.0
//
// A small real transformer with weights from a seed: serves text without a download.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/executor/tiny/tiny_transformer.hpp>

namespace sluice::inline v0 {

struct tiny_model_options {
  std::uint64_t seed = 0;                 ///< of the weights
  std::chrono::milliseconds min_step{0};  ///< least duration of a step
  std::uint32_t max_model_len = 16384;    ///< tokens
  std::uint32_t window_tokens = 0;        ///< what every second layer sees of the past; 0: everything
  /// Called with the logits of each entry that samples, on the compute stream's thread; for tests.
  std::function<void(const batch_entry&, std::span<const float> logits)> observe_logits;
};

/// Computes on the CPU, as one host function per step: the bound memory must be host memory, one segment per group.
/// Its tokens are those of byte_tokenizer.
///
/// Without a window there is one KV group. With one there are two over equal blocks: full-attention layers, and
/// sliding-window layers, which never look at a block before the window. The two are different models with
/// different names.
///
/// The next token depends on every KV entry of the sequence that a layer sees. KV and logits are, to the bit, a
/// function of the sequence's tokens and the seed: neither the rest of the batch, nor how a prompt was cut into steps,
/// nor the block ids, nor preemption changes them. Sampling: see tiny_sampler.hpp.
///
/// `batch` is read when the step runs, not at enqueue. The model must outlive every step it enqueued. Released
/// weights are made from the seed again; without them no step is enqueued.
class tiny_model : public model_executor {
 public:
  explicit tiny_model(tiny_model_options options = {});

  model_info info() const override;
  kv_spec kv(std::uint32_t block_size) const override;
  void bind(const kv_memory& memory) override;
  gpu::status enqueue(const step_batch& batch, const std::vector<sampled_token>& previous, gpu::stream& compute,
                      std::vector<sampled_token>& sampled) override;
  gpu::status release_weights() override;
  gpu::status restore_weights() override;

 private:
  void run(const batch_entry& entry, const std::vector<sampled_token>& previous, std::vector<sampled_token>& sampled);
  std::size_t num_groups() const { return tiny::num_groups(options_.window_tokens != 0); }

  const tiny_model_options options_;
  std::unique_ptr<tiny::transformer> transformer_;  ///< null while the weights are released
  std::vector<tiny::kv_view> caches_;               ///< by group
};

}  // namespace sluice::inline v0
