// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::inline v0 {

/// What to do when the engine finds its own state inconsistent.
enum class on_invariant : std::uint8_t { abort_process, fail_request };

/// Everything that a runtime can be told. Defaults are those of `sluice-serve`.
struct runtime_options {
  std::uint32_t block_size = 16;               ///< tokens per block, 1 to 1024
  std::uint32_t blocks_per_chunk = 1;          ///< blocks per offload unit, 1 to 64
  std::uint32_t num_device_blocks = 0;         ///< the null block included; 0: from `device_memory_fraction`
  double device_memory_fraction = 0.25;        ///< of the device's free bytes, in (0, 1]
  std::uint64_t host_tier_bytes = 4ULL << 30;  ///< 0 turns offloading off
  bool enable_prefix_caching = true;
  std::uint32_t max_model_len = 0;             ///< tokens; 0: the model's but at most what the pool holds
  std::uint32_t max_num_seqs = 256;            ///< running and loading requests together
  std::uint32_t max_num_batched_tokens = 2048; ///< tokens computed in one step
  std::uint32_t max_queued_requests = 1024;    ///< accepted but not admitted requests
  std::chrono::milliseconds flush_timeout{10'000};  ///< a boundary's flush is given up after this
  on_invariant invariant_policy = on_invariant::fail_request;
  std::size_t num_actor_threads = 1;           ///< worker threads for actors, at least 1
};

}  // namespace sluice::inline v0
