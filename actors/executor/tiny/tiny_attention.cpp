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
  const kv_view& cache;
  std::span<const block_id> table;
  std::size_t layer;
  std::uint32_t num_positions;
  std::size_t kv_head;

  /// Calls visit(position, row) in order of position.
  template <class Visit>
  void for_each(kv_view::part which, Visit visit) const {
    for (std::uint32_t first = 0, index = 0; first < num_positions; first += cache.block_size, ++index) {
      const float* rows = cache.rows(table[index], layer, which) + kv_head * head_dim;
      const auto end = std::min(first + cache.block_size, num_positions);
      const bool is_last = end == num_positions;  // else the next block is fetched ahead: blocks lie far apart
      const float* next = is_last ? rows : cache.rows(table[index + 1], layer, which) + kv_head * head_dim;
      for (auto position = first; position < end; ++position, rows += kv_dim, next += kv_dim) {
        __builtin_prefetch(next);
        visit(position, load_head(rows));
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
  rows.for_each(kv_view::part::key, [&](std::uint32_t position, const head_vector& key) {
    scores0[position] = dot(query0, key);
    scores1[position] = dot(query1, key);
  });
  const float scale0 = 1.0f / exponentiate(scores0, rows.num_positions);
  const float scale1 = 1.0f / exponentiate(scores1, rows.num_positions);
  head_vector total0 = {}, total1 = {};
  rows.for_each(kv_view::part::value, [&](std::uint32_t position, const head_vector& value) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < head_vectors; ++i) {
      total0.part[i] += scores0[position] * value.part[i];
      total1.part[i] += scores1[position] * value.part[i];
    }
  });
  for (std::size_t i = 0; i < head_vectors; ++i) {
    store(output + i * lanes, total0.part[i] * scale0);
    store(output + head_dim + i * lanes, total1.part[i] * scale1);
  }
}

}  // namespace

static_assert(heads_per_kv_head == 2 && head_vectors == 4);

void attend(const kv_view& cache, std::span<const block_id> table, std::size_t layer, std::uint32_t num_positions,
            const float* queries, std::span<float> scores, float* output) {
  for (std::size_t kv_head = 0; kv_head < num_kv_heads; ++kv_head) {
    const auto first = kv_head * heads_per_kv_head * head_dim;
    attend_pair({cache, table, layer, num_positions, kv_head}, queries + first, scores.data(), scores.size() / 2,
                output + first);
  }
}

}  // namespace sluice::inline v0::tiny
