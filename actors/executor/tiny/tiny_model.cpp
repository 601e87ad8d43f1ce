// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/tiny/tiny_model.hpp>

#include <array>
#include <cassert>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include <sluice/actors/executor/tiny/tiny_sampler.hpp>
#include <sluice/actors/request/byte_tokenizer.hpp>

namespace sluice::inline v0 {

namespace {

/// A step that failed may not have sampled what follows it; then any token will do.
token_id known_token(const batch_entry& entry, std::size_t index, const std::vector<sampled_token>& previous) {
  if (entry.tokens[index] != pending_token) return entry.tokens[index];
  return entry.previous_sample < previous.size() ? previous[entry.previous_sample].token : token_id{0};
}

}  // namespace

tiny_model::tiny_model(tiny_model_options options) : options_(std::move(options)), caches_(num_groups()) {
  (void)restore_weights();
}

model_info tiny_model::info() const {
  const auto window = options_.window_tokens;
  return {(window == 0 ? "tiny-" : "tiny-window-" + std::to_string(window) + "-") + std::to_string(options_.seed),
          "float32",
          options_.max_model_len,
          static_cast<std::uint32_t>(tiny::vocab_size),
          {byte_tokenizer::end_token}};
}

kv_spec tiny_model::kv(std::uint32_t block_size) const {
  kv_spec spec;
  spec.groups.push_back({kv_group_spec::kind::full_attention, 0, block_size});
  if (options_.window_tokens != 0)
    spec.groups.push_back({kv_group_spec::kind::sliding_window, options_.window_tokens, block_size});
  spec.bytes_per_block = block_size * tiny::kv_bytes_per_token / num_groups();
  return spec;
}

void tiny_model::bind(const kv_memory& memory) {
  assert(memory.segments.size() == num_groups());
  const auto bytes_per_token = tiny::kv_bytes_per_token / num_groups();
  for (std::size_t group = 0; group < num_groups(); ++group) {
    assert(memory.segments[group].size() == 1);
    const auto& segment = memory.segments[group][0];
    assert(segment.bytes_per_block % bytes_per_token == 0);
    caches_[group] = {segment.base, segment.stride_bytes,
                      static_cast<std::uint32_t>(segment.bytes_per_block / bytes_per_token)};
  }
}

gpu::status tiny_model::enqueue(const step_batch& batch, const std::vector<sampled_token>& previous,
                                gpu::stream& compute, std::vector<sampled_token>& sampled) {
  if (!transformer_) return tl::unexpected(gpu::error{"enqueue", EINVAL, "the weights are released", 0});
  return compute.enqueue_function([this, &batch, &previous, &sampled] {
    const auto start = std::chrono::steady_clock::now();
    for (const auto& entry : batch.entries) run(entry, previous, sampled);
    if (options_.min_step.count() > 0) std::this_thread::sleep_until(start + options_.min_step);
  });
}

gpu::status tiny_model::release_weights() {
  transformer_.reset();
  return {};
}

gpu::status tiny_model::restore_weights() {
  if (!transformer_)
    transformer_ = std::make_unique<tiny::transformer>(options_.seed, options_.max_model_len, options_.window_tokens);
  return {};
}

void tiny_model::run(const batch_entry& entry, const std::vector<sampled_token>& previous,
                     std::vector<sampled_token>& sampled) {
  assert(entry.block_tables.size() == num_groups());
  std::array<tiny::sequence_kv, 2> kv;
  for (std::size_t group = 0; group < num_groups(); ++group) kv[group] = {caches_[group], entry.block_tables[group]};
  std::array<float, tiny::vocab_size> logits;
  for (std::uint32_t i = 0; i < entry.tokens.size(); ++i) {
    const auto token = known_token(entry, i, previous);
    assert(token >= 0 && static_cast<std::size_t>(token) < tiny::vocab_size);
    const bool is_sampled = entry.samples && i + 1 == entry.tokens.size();
    transformer_->forward({kv.data(), num_groups()}, entry.first_position + i, token,
                          is_sampled ? std::span<float>(logits) : std::span<float>());
  }
  if (!entry.samples) return;
  if (options_.observe_logits) options_.observe_logits(entry, logits);
  sampled.push_back({entry.request, entry.attempt, tiny::sample_token(logits, entry.sampling, entry.output_position)});
}

}  // namespace sluice::inline v0
