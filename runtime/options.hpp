// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sluice/actors/scheduler/kv_events.hpp>
#include <sluice/actors/scheduler/policies.hpp>

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
  std::chrono::milliseconds flush_timeout{10'000};  ///< a boundary's flush is given up after this; 1 ms to 24 h
  bool async_scheduling = true;                ///< plan one step ahead of the results
  scheduling_policy scheduling = scheduling_policy::fcfs;
  bool preemption_offload = true;              ///< store a victim's chunks before its blocks are given away
  offload_scope offload = offload_scope::all;
  store_policy storing = store_policy::incremental;
  bool offload_prompt_only = false;            ///< but for victims
  std::uint32_t store_threshold = 0;           ///< store a chunk from its nth sighting on; 0 and 1: at once
  std::uint32_t num_tracked_sightings = 65536; ///< chunks whose sightings are counted, 1 to 16777216
  eviction_policy_kind eviction_policy = eviction_policy_kind::lru;  ///< of the host tier
  std::int64_t recompute_budget = 0;           ///< chunks that are rather computed than waited for, 0 to 2^32 - 1
  std::chrono::milliseconds transfer_timeout{60'000};  ///< then a transfer is given up; 1 ms to 24 h
  std::chrono::milliseconds lookup_timeout{10'000};    ///< longest wait for pending chunks and lookups; 1 ms to 24 h
  bool match_chunk_beginnings = true;          ///< load the leading blocks of a stored chunk that goes on differently
  bool refuse_while_asleep = false;            ///< else requests that arrive while the engine sleeps wait
  on_invariant invariant_policy = on_invariant::fail_request;
  /// Receives KV events: what became findable or ceased to be, in which cache, in order. Called on the scheduler's
  /// thread; must not block and must not throw. Empty: none are made.
  std::function<void(const std::vector<kv_event>&)> on_kv_events = {};
  std::size_t num_actor_threads = 1;           ///< worker threads for actors, at least 1
};

}  // namespace sluice::inline v0
