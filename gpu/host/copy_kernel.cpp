// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/copy_kernel.hpp>

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::inline v0::gpu::host {

#if defined(__x86_64__)

namespace {

constexpr std::size_t line_bytes = 64;

/// Four lines a round, `destination` on a line, `num_bytes` whole rounds.
constexpr std::size_t round_bytes = 4 * line_bytes;

__attribute__((target("avx2"))) void stream_avx2(std::byte* destination, const std::byte* source,
                                                 std::size_t num_bytes) {
  for (std::size_t at = 0; at < num_bytes; at += line_bytes) {
    const auto* from = reinterpret_cast<const __m256i*>(source + at);
    auto* to = reinterpret_cast<__m256i*>(destination + at);
    const __m256i low = _mm256_loadu_si256(from);
    const __m256i high = _mm256_loadu_si256(from + 1);
    _mm256_stream_si256(to, low);
    _mm256_stream_si256(to + 1, high);
  }
}

__attribute__((target("avx512f"))) void stream_avx512(std::byte* destination, const std::byte* source,
                                                      std::size_t num_bytes) {
  for (std::size_t at = 0; at < num_bytes; at += round_bytes) {
    const std::byte* from = source + at;
    std::byte* to = destination + at;
    const __m512i first = _mm512_loadu_si512(from);
    const __m512i second = _mm512_loadu_si512(from + line_bytes);
    const __m512i third = _mm512_loadu_si512(from + 2 * line_bytes);
    const __m512i fourth = _mm512_loadu_si512(from + 3 * line_bytes);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), first);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + line_bytes), second);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 2 * line_bytes), third);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 3 * line_bytes), fourth);
  }
}

}  // namespace

copy_method best_copy_method() {
  static const copy_method best = __builtin_cpu_supports("avx512f") ? copy_method::avx512
                                  : __builtin_cpu_supports("avx2")  ? copy_method::avx2
                                                                    : copy_method::memcpy;
  return best;
}

void copy_bytes(std::byte* destination, const std::byte* source, std::size_t num_bytes, copy_method method) {
  if (num_bytes < min_streaming_bytes || method == copy_method::memcpy) {
    if (num_bytes != 0) std::memcpy(destination, source, num_bytes);
    return;
  }
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(destination) % line_bytes;
  const std::size_t head = past_line == 0 ? 0 : line_bytes - past_line;
  const std::size_t body = (num_bytes - head) / round_bytes * round_bytes;
  std::memcpy(destination, source, head);
  if (method == copy_method::avx512) {
    stream_avx512(destination + head, source + head, body);
  } else {
    stream_avx2(destination + head, source + head, body);
  }
  std::memcpy(destination + head + body, source + head + body, num_bytes - head - body);
  _mm_sfence();  // Non-temporal stores are not ordered by a mutex.
}

#else

copy_method best_copy_method() { return copy_method::memcpy; }

void copy_bytes(std::byte* destination, const std::byte* source, std::size_t num_bytes, copy_method) {
  if (num_bytes != 0) std::memcpy(destination, source, num_bytes);
}

#endif

}  // namespace sluice::inline v0::gpu::host
