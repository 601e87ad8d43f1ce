// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/tiny/tiny_model.hpp>

#include <array>
#include <cassert>
#include <string>
#include <thread>
#include <utility>

#include <sluice/actors/executor/tiny/tiny_sampler.hpp>
#include <sluice/actors/request/byte_tokenizer.hpp>

namespace sluice::inline v0 {

tiny_model::tiny_model(tiny_model_options options)
    : options_(std::move(options)), transformer_(options_.seed, options_.max_model_len) {}

model_info tiny_model::info() const {
  return {"tiny-" + std::to_string(options_.seed),
          "float32",
          options_.max_model_len,
          static_cast<std::uint32_t>(tiny::vocab_size),
          {byte_tokenizer::end_token}};
}

kv_spec tiny_model::kv(std::uint32_t block_size) const {
  kv_group_spec group;
  group.block_size = block_size;
  return {{group}, block_size * tiny::kv_bytes_per_token};
}

void tiny_model::bind(const kv_memory& memory) {
  assert(memory.segments.size() == 1 && memory.segments[0].size() == 1);
  const auto& segment = memory.segments[0][0];
  assert(segment.bytes_per_block % tiny::kv_bytes_per_token == 0);
  cache_ = {segment.base, segment.stride_bytes,
            static_cast<std::uint32_t>(segment.bytes_per_block / tiny::kv_bytes_per_token)};
}

gpu::status tiny_model::enqueue(const step_batch& batch, gpu::stream& compute, std::vector<sampled_token>& sampled) {
  return compute.enqueue_function([this, &batch, &sampled] {
    const auto start = std::chrono::steady_clock::now();
    for (const auto& entry : batch.entries) run(entry, sampled);
    if (options_.min_step.count() > 0) std::this_thread::sleep_until(start + options_.min_step);
  });
}

void tiny_model::run(const batch_entry& entry, std::vector<sampled_token>& sampled) {
  const auto& table = entry.block_tables.front();
  std::array<float, tiny::vocab_size> logits;
  for (std::uint32_t i = 0; i < entry.tokens.size(); ++i) {
    const auto token = entry.tokens[i];
    assert(token >= 0 && static_cast<std::size_t>(token) < tiny::vocab_size);
    const bool is_sampled = entry.samples && i + 1 == entry.tokens.size();
    transformer_.forward(cache_, table, entry.first_position + i, token,
                         is_sampled ? std::span<float>(logits) : std::span<float>());
  }
  if (!entry.samples) return;
  if (options_.observe_logits) options_.observe_logits(entry, logits);
  sampled.push_back({entry.request, entry.attempt, tiny::sample_token(logits, entry.sampling, entry.output_position)});
}

}  // namespace sluice::inline v0
