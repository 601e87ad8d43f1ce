// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/tiny/tiny_transformer.hpp>

#include <algorithm>
#include <cmath>

#include <sluice/actors/executor/tiny/tiny_kernels.hpp>
#include <sluice/actors/executor/tiny/tiny_prior.hpp>
#include <sluice/actors/executor/tiny/tiny_sampler.hpp>

namespace sluice::inline v0::tiny {
namespace {

constexpr std::size_t num_pairs = head_dim / 2;
constexpr std::uint32_t num_calibration_tokens = 512;

std::vector<float> make_rotations(std::uint32_t num_positions) {
  std::vector<float> table;
  table.reserve(num_positions * head_dim);
  for (std::uint32_t position = 0; position < num_positions; ++position) {
    double angles[num_pairs];
    for (std::size_t i = 0; i < num_pairs; ++i)
      angles[i] = position * std::pow(double{rope_base}, -static_cast<double>(i) / num_pairs);
    for (const double angle : angles) table.push_back(static_cast<float>(std::cos(angle)));
    for (const double angle : angles) table.push_back(static_cast<float>(std::sin(angle)));
  }
  return table;
}

void feed_forward(const layer_weights& layer, float* state) {
  float normed[model_dim], gate_up[2 * ffn_dim], hidden[ffn_dim], change[model_dim];
  rms_norm<model_dim>(state, normed);
  multiply<model_dim, 2 * ffn_dim>(normed, layer.gate_up.data(), gate_up);
  swiglu<ffn_dim>(gate_up, gate_up + ffn_dim, hidden);
  multiply<ffn_dim, model_dim>(hidden, layer.down.data(), change);
  add<model_dim>(change, state);
}

/// Mean and deviation of what was added.
struct moments {
  double sum = 0, sum_of_squares = 0;

  void add(double value) {
    sum += value;
    sum_of_squares += value * value;
  }
  double mean() const { return sum / num_calibration_tokens; }
  double deviation() const { return std::sqrt(sum_of_squares / num_calibration_tokens - mean() * mean()); }
};

}  // namespace

transformer::transformer(std::uint64_t seed, std::uint32_t max_model_len, std::uint32_t window_tokens)
    : weights_(make_weights(seed)),
      window_tokens_(window_tokens),
      rotations_(make_rotations(std::max(max_model_len, num_calibration_tokens))),
      scores_((std::max(max_model_len, num_calibration_tokens) + lanes) * heads_per_kv_head) {
  calibrate();
}

attended_rows transformer::rows_of(std::span<const sequence_kv> kv, std::size_t layer, std::uint32_t position) const {
  if (window_tokens_ == 0) return {kv[0], layer, 0, position + 1};
  const bool is_window = layer % 2 == 1;
  const std::uint32_t first = is_window ? position + 1 - std::min(position + 1, window_tokens_) : 0;
  return {kv[is_window ? 1 : 0], layer / 2, first, position + 1};
}

void transformer::forward(std::span<const sequence_kv> kv, std::uint32_t position, token_id token,
                          std::span<float> logits) {
  float state[model_dim], qkv[qkv_dim], attended[model_dim], change[model_dim];
  std::copy_n(&weights_->embedding[static_cast<std::size_t>(token) * model_dim], model_dim, state);
  add_position(position, state);
  for (std::size_t index = 0; index < num_layers; ++index) {
    const auto& layer = weights_->layers[index];
    const auto rows = rows_of(kv, index, position);
    const auto& [cache, table] = rows.sequence;
    project_qkv(layer, position, state, qkv);
    std::copy_n(qkv + model_dim, kv_dim, cache.row(table, position, rows.layer, kv_view::part::key));
    std::copy_n(qkv + model_dim + kv_dim, kv_dim, cache.row(table, position, rows.layer, kv_view::part::value));
    if (logits.empty() && index + 1 == num_layers) return;  // the rest would only feed the logits
    attend(rows, qkv, scores_, attended);
    for (std::size_t head = 0; head < num_heads; ++head)
      rms_norm<head_dim>(attended + head * head_dim, attended + head * head_dim);
    multiply<model_dim, model_dim>(attended, layer.attention_out.data(), change);
    add<model_dim>(change, state);
    feed_forward(layer, state);
  }
  write_logits(state, token, logits);
}

void transformer::write_logits(const float* state, token_id last, std::span<float> logits) const {
  float normed[model_dim], scores[padded_vocab_size];
  rms_norm<model_dim>(state, normed);
  multiply<model_dim, padded_vocab_size>(normed, weights_->head.data(), scores);
  const auto prior = prior_after(last);
  for (std::size_t i = 0; i < vocab_size; ++i) logits[i] = (scores[i] - logit_offset_[i]) * logit_scale_[i] + prior[i];
}

void transformer::calibrate() {
  logit_scale_.fill(1.0f);
  logit_offset_.fill(0.0f);
  std::vector<float> memory(num_calibration_tokens * kv_bytes_per_token / sizeof(float));
  const block_id table[] = {block_id{0}};
  const auto groups = num_groups(window_tokens_ != 0);
  std::vector<sequence_kv> kv;
  for (std::size_t group = 0; group < groups; ++group) {
    auto* const base = reinterpret_cast<std::byte*>(memory.data() + group * memory.size() / groups);
    kv.push_back({{base, 0, num_calibration_tokens}, table});
  }
  std::array<moments, vocab_size> scores;
  std::array<float, vocab_size> logits;
  token_id token = ' ';
  for (std::uint32_t position = 0; position < num_calibration_tokens; ++position) {
    forward(kv, position, token, logits);
    const auto prior = prior_after(token);
    token = sample_token(prior, {1.0, 0}, position);
    for (std::size_t i = 0; i < vocab_size; ++i) scores[i].add(double{logits[i]} - double{prior[i]});
  }
  for (std::size_t i = 0; i < vocab_size; ++i) {
    logit_offset_[i] = static_cast<float>(scores[i].mean());
    logit_scale_[i] = static_cast<float>(logit_gain / scores[i].deviation());
  }
}

void transformer::project_qkv(const layer_weights& layer, std::uint32_t position, const float* state,
                              float* qkv) const {
  float normed[model_dim];
  rms_norm<model_dim>(state, normed);
  multiply<model_dim, qkv_dim>(normed, layer.qkv.data(), qkv);
  for (std::size_t head = 0; head < num_heads + num_kv_heads; ++head) {  // keys follow the queries
    float* const values = qkv + head * head_dim;
    const bool is_query = head < num_heads;
    const auto kind = head % heads_per_kv_head;
    const float gain = is_query ? score_gains[kind] / std::sqrt(float{head_dim}) : 1.0f;
    const float bias = is_query ? query_biases[kind] : key_bias;
    for (std::size_t i = 0; i < head_dim; ++i) values[i] += bias;
    rms_norm<head_dim>(values, values, gain);
    rotate(position, values);
  }
}

void transformer::rotate(std::uint32_t position, float* head) const {
  const float* const cosines = &rotations_[position * head_dim];
  const float* const sines = cosines + num_pairs;
  for (std::size_t i = 0; i < num_pairs; i += lanes) {
    const f4 a = load(head + i), b = load(head + num_pairs + i);
    const f4 c = load(cosines + i), s = load(sines + i);
    store(head + i, a * c - b * s);
    store(head + num_pairs + i, a * s + b * c);
  }
}

}  // namespace sluice::inline v0::tiny
