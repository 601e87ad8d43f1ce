// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/executor/tiny/tiny_attention.hpp>

#include <algorithm>

#include <sluice/actors/executor/tiny/tiny_kernels.hpp>

namespace sluice::inline v0::tiny {
namespace {

constexpr std::size_t head_vectors = head_dim / lanes;

struct head_vector {
  f4 part[head_vectors];
};

head_vector load_head(const float* from) {
  head_vector value;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < head_vectors; ++i) value.part[i] = load(from + i * lanes);
  return value;
}

float dot(const head_vector& a, const head_vector& b) {
  return sum((a.part[0] * b.part[0] + a.part[1] * b.part[1]) + (a.part[2] * b.part[2] + a.part[3] * b.part[3]));
}

/// Scores become weights that are not divided by their sum yet; returns the sum.
float exponentiate(float* scores, std::uint32_t num_positions) {
  const std::size_t end = (num_positions + lanes - 1) / lanes * lanes;
  for (std::size_t i = num_positions; i < end; ++i) scores[i] = -1e30f;
  f4 largest = load(scores);
  for (std::size_t i = lanes; i < end; i += lanes) largest = max(largest, load(scores + i));
  const f4 top = splat(std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3])));
  f4 total = {};
  for (std::size_t i = 0; i < end; i += lanes) {
    const f4 weight = exp(load(scores + i) - top);
    store(scores + i, weight);
    total += weight;
  }
  return sum(total);
}

/// What is attended to: the rows of one KV head.
struct head_rows {
  const attended_rows& rows;
  std::size_t kv_head;

  std::uint32_t size() const { return rows.end - rows.first; }

  /// Calls visit(index, row) in order of position; index 0 is the first position.
  template <class Visit>
  void for_each(kv_view::part which, Visit visit) const {
    const auto [cache, table] = rows.sequence;  // a copy: kept in registers
    const auto block_size = cache.block_size;
    auto block = rows.first / block_size;
    auto slot = rows.first % block_size;
    for (std::uint32_t index = 0, num_rows = size(); index < num_rows; slot = 0, ++block) {
      const float* row = cache.rows(table[block], rows.layer, which) + kv_head * head_dim + slot * kv_dim;
      const auto end = std::min(index + block_size - slot, num_rows);
      const bool is_last = end == num_rows;  // else the next block is fetched ahead: blocks lie far apart
      const float* next = is_last ? row : cache.rows(table[block + 1], rows.layer, which) + kv_head * head_dim;
      for (; index < end; ++index, row += kv_dim, next += kv_dim) {
        __builtin_prefetch(next);
        visit(index, load_head(row));
      }
    }
  }
};

/// The two query heads of one KV head.
void attend_pair(const head_rows& rows, const float* queries, float* scores, std::size_t score_stride, float* output) {
  const auto query0 = load_head(queries);
  const auto query1 = load_head(queries + head_dim);
  float* const scores0 = scores;
  float* const scores1 = scores + score_stride;
  rows.for_each(kv_view::part::key, [&](std::uint32_t index, const head_vector& key) {
    scores0[index] = dot(query0, key);
    scores1[index] = dot(query1, key);
  });
  const float scale0 = 1.0f / exponentiate(scores0, rows.size());
  const float scale1 = 1.0f / exponentiate(scores1, rows.size());
  head_vector total0 = {}, total1 = {};
  rows.for_each(kv_view::part::value, [&](std::uint32_t index, const head_vector& value) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < head_vectors; ++i) {
      total0.part[i] += scores0[index] * value.part[i];
      total1.part[i] += scores1[index] * value.part[i];
    }
  });
  for (std::size_t i = 0; i < head_vectors; ++i) {
    store(output + i * lanes, total0.part[i] * scale0);
    store(output + head_dim + i * lanes, total1.part[i] * scale1);
  }
}

}  // namespace

static_assert(heads_per_kv_head == 2 && head_vectors == 4);

void attend(const attended_rows& rows, const float* queries, std::span<float> scores, float* output) {
  for (std::size_t kv_head = 0; kv_head < num_kv_heads; ++kv_head) {
    const auto first = kv_head * heads_per_kv_head * head_dim;
    attend_pair({rows, kv_head}, queries + first, scores.data(), scores.size() / 2, output + first);
  }
}

}  // namespace sluice::inline v0::tiny
