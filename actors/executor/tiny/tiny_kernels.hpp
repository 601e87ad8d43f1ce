// SPDX-License-Identifier: Apache-2.0
//
// Vector arithmetic of the tiny model. Sizes are fixed at compile time and every sum has one order, so a result
// depends on its inputs only, never on how calls are grouped.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::inline v0::tiny {

/// Four floats; compilers turn it into whatever vector registers the machine has.
using f4 = float __attribute__((vector_size(16)));
using i4 = std::int32_t __attribute__((vector_size(16)));

inline constexpr std::size_t lanes = 4;

inline f4 load(const float* from) {
  f4 value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline void store(float* to, f4 value) { std::memcpy(to, &value, sizeof(value)); }

inline f4 splat(float value) { return f4{value, value, value, value}; }

inline float sum(f4 value) { return (value[0] + value[2]) + (value[1] + value[3]); }

inline f4 max(f4 a, f4 b) { return a > b ? a : b; }

/// exp(x) for x <= 80 within 2 ulp or so; below -80 it is exp(-80).
/// Method: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor polynomial, 2^n by the exponent bits.
inline f4 exp(f4 x) {
  x = max(x, splat(-80.0f));
  const i4 n = __builtin_convertvector(x * 1.44269504f + splat(256.5f), i4) - 256;  // floor(x / ln 2 + 1/2)
  const f4 steps = __builtin_convertvector(n, f4);
  const f4 r = (x - steps * 0.693145752f) - steps * 1.42860677e-6f;
  f4 value = splat(1.0f / 720);
  value = value * r + 1.0f / 120;
  value = value * r + 1.0f / 24;
  value = value * r + 1.0f / 6;
  value = value * r + 0.5f;
  value = value * r + 1.0f;
  value = value * r + 1.0f;
  return value * reinterpret_cast<f4>((n + 127) << 23);
}

/// output[Out] = input[In] * weights[In][Out].
template <std::size_t In, std::size_t Out>
void multiply(const float* input, const float* weights, float* output) {
  constexpr std::size_t num_vectors = 8;
  constexpr std::size_t tile = num_vectors * lanes;
  static_assert(Out % tile == 0);
  for (std::size_t first = 0; first < Out; first += tile) {
    f4 total[num_vectors] = {};
    const float* row = weights + first;
    for (std::size_t i = 0; i < In; ++i, row += Out) {
      const f4 factor = splat(input[i]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < num_vectors; ++v) total[v] += factor * load(row + v * lanes);
    }
#pragma GCC unroll 8
    for (std::size_t v = 0; v < num_vectors; ++v) store(output + first + v * lanes, total[v]);
  }
}

/// output = gain * input / rms(input). In place is allowed.
template <std::size_t Size>
void rms_norm(const float* input, float* output, float gain = 1.0f) {
  f4 squares = {};
  for (std::size_t i = 0; i < Size; i += lanes) squares += load(input + i) * load(input + i);
  const float scale = gain / std::sqrt(sum(squares) / static_cast<float>(Size) + 1e-6f);
  for (std::size_t i = 0; i < Size; i += lanes) store(output + i, load(input + i) * scale);
}

/// output = silu(gate) * up.
template <std::size_t Size>
void swiglu(const float* gate, const float* up, float* output) {
  for (std::size_t i = 0; i < Size; i += lanes) {
    const f4 x = load(gate + i);
    store(output + i, x / (1.0f + exp(-x)) * load(up + i));
  }
}

template <std::size_t Size>
void add(const float* input, float* output) {
  for (std::size_t i = 0; i < Size; i += lanes) store(output + i, load(output + i) + load(input + i));
}

}  // namespace sluice::inline v0::tiny
