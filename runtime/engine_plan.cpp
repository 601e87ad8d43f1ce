// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/engine_plan.hpp>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace sluice::inline v0 {

namespace {

constexpr std::uint64_t max_count = std::numeric_limits<std::uint32_t>::max() - 1;
constexpr std::uint64_t max_block_size = 1024;  // tokens

template <class Value>
std::string text_of(const Value& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class Value>
std::optional<error> check_range(const char* option, Value given, Value least, Value most) {
  if (given >= least && given <= most) return std::nullopt;
  return error{errc::invalid_argument, std::string(option) + " is " + text_of(given) + ", allowed is " +
                                           text_of(least) + " to " + text_of(most)};
}

/// The first complaint about a list of options.
class option_check {
 public:
  template <class Value>
  void range(const char* option, Value given, Value least, Value most) {
    if (!fault_) fault_ = check_range(option, given, least, most);
  }
  void count(const char* option, std::uint64_t given, std::uint64_t least, std::uint64_t most = max_count) {
    range(option, given, least, most);
  }
  void timeout(const std::string& option, std::chrono::milliseconds given) {
    constexpr auto day = std::chrono::milliseconds{std::chrono::hours{24}};
    range<std::int64_t>((option + " in ms").c_str(), given.count(), 1, day.count());
  }
  void fail(error fault) {
    if (!fault_) fault_ = std::move(fault);
  }
  std::optional<error> fault() const { return fault_; }

 private:
  std::optional<error> fault_;
};

std::optional<error> check_options(const runtime_options& options) {
  option_check check;
  check.count("block_size", options.block_size, 1, max_block_size);
  check.count("blocks_per_chunk", options.blocks_per_chunk, 1, 64);
  if (options.num_device_blocks != 0) check.count("num_device_blocks", options.num_device_blocks, 2);
  check.count("max_num_seqs", options.max_num_seqs, 1);
  check.count("max_num_batched_tokens", options.max_num_batched_tokens, 1);
  check.count("num_actor_threads", options.num_actor_threads, 1, 1024);
  check.count("num_tracked_sightings", options.num_tracked_sightings, 1, 1ULL << 24);
  check.range<std::int64_t>("recompute_budget", options.recompute_budget, 0, max_count);
  check.timeout("flush_timeout", options.flush_timeout);
  check.timeout("transfer_timeout", options.transfer_timeout);
  check.timeout("lookup_timeout", options.lookup_timeout);
  if (!(options.device_memory_fraction > 0 && options.device_memory_fraction <= 1))
    check.fail({errc::invalid_argument, "device_memory_fraction is " + text_of(options.device_memory_fraction) +
                                            ", allowed is above 0 and at most 1"});
  if (options.offload == offload_scope::preempted && !options.preemption_offload)
    check.fail({errc::invalid_argument, "offload is preempted and preemption_offload is false: nothing would ever be "
                                        "stored; allowed is one of the two"});
  return check.fault();
}

std::optional<error> check_groups(const kv_spec& kv) {
  option_check check;
  check.count("the model's number of KV groups", kv.groups.size(), 1, 64);
  check.count("the model's bytes per block", kv.bytes_per_block, 1, 1ULL << 40);
  for (std::size_t i = 0; i < kv.groups.size(); ++i) {
    const auto name = "the model's KV group " + text_of(i) + ": ";
    check.count((name + "block_size").c_str(), kv.groups[i].block_size, 1, max_block_size);
    if (kv.groups[i].attention == kv_group_spec::kind::sliding_window)
      check.count((name + "window_tokens").c_str(), kv.groups[i].window_tokens, 1);
  }
  return check.fault();
}

std::string gib(std::uint64_t bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << static_cast<double>(bytes) / (1ULL << 30) << " GiB";
  return out.str();
}

std::optional<error> resolve_pool(const runtime_options& options, const gpu::device& device, engine_plan& plan) {
  auto& config = plan.scheduler;
  config.num_device_blocks = options.num_device_blocks;
  if (config.num_device_blocks == 0) {
    const auto bytes = options.device_memory_fraction * static_cast<double>(device.info().free_device_bytes);
    const auto num_blocks = bytes / static_cast<double>(config.kv.bytes_per_block);
    config.num_device_blocks =
        static_cast<std::uint32_t>(std::min<double>(num_blocks, std::numeric_limits<std::uint32_t>::max() - 1));
  }
  plan.pool_bytes = std::uint64_t{config.num_device_blocks} * config.kv.bytes_per_block;
  if (config.num_device_blocks >= 2) return std::nullopt;
  return error{errc::insufficient_memory, "the device has " + gib(device.info().free_device_bytes) +
                                              " free, of which not even two blocks of " +
                                              text_of(config.kv.bytes_per_block) + " bytes can be taken"};
}

/// The longest request that the pool can hold when it is alone, at most what the model allows.
std::uint32_t most_tokens(const scheduler_config& config) {
  std::uint32_t fits = 0, above = config.model.max_model_len;
  while (fits < above) {
    const auto middle = above - (above - fits) / 2;  // above fits
    if (config.num_blocks_at_most(middle) < config.num_device_blocks)
      fits = middle;
    else
      above = middle - 1;
  }
  return fits;
}

std::optional<error> resolve_model_len(const runtime_options& options, scheduler_config& config) {
  const auto most = most_tokens(config);
  if (most == 0)
    return error{errc::insufficient_memory, "the pool has " + text_of(config.num_device_blocks) +
                                                " blocks, a request of one token takes " +
                                                text_of(config.num_blocks_at_most(1)) + " besides the null block"};
  config.max_model_len = options.max_model_len == 0 ? most : options.max_model_len;
  if (options.max_model_len == 0) return std::nullopt;
  return check_range<std::uint32_t>("max_model_len", options.max_model_len, 1, most);
}

void take_policies(const runtime_options& options, scheduler_config& config) {
  config.blocks_per_chunk = options.blocks_per_chunk;
  config.enable_prefix_caching = options.enable_prefix_caching;
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = options.max_num_batched_tokens;
  config.async_scheduling = options.async_scheduling;
  config.preemption_offload = options.preemption_offload;
  config.order = options.scheduling;
  config.offload = options.offload;
  config.storing = options.storing;
  config.offload_prompt_only = options.offload_prompt_only;
  config.store_threshold = options.store_threshold;
  config.num_tracked_sightings = options.num_tracked_sightings;
  config.recompute_budget = static_cast<std::uint32_t>(options.recompute_budget);
  config.match_chunk_beginnings = options.match_chunk_beginnings;
  config.records_kv_events = static_cast<bool>(options.on_kv_events);
  config.transfer_timeout = options.transfer_timeout;
  config.lookup_timeout = options.lookup_timeout;
}

std::optional<error> resolve_tier(const runtime_options& options, std::uint64_t available, engine_plan& plan) {
  auto& config = plan.scheduler;
  const auto slot_bytes = config.kv.bytes_per_block * config.blocks_per_chunk;
  const auto num_slots = options.host_tier_bytes / slot_bytes;
  config.num_host_slots =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(num_slots, std::numeric_limits<std::uint32_t>::max() - 1));
  plan.tier_bytes = std::uint64_t{config.num_host_slots} * slot_bytes;
  if (options.host_tier_bytes > 0 && config.num_host_slots == 0)
    return error{errc::invalid_argument, "host_tier_bytes is " + text_of(options.host_tier_bytes) +
                                             ", allowed is 0 or at least one chunk of " + text_of(slot_bytes) + " bytes"};
  if (options.host_tier_bytes <= available) return std::nullopt;
  return error{errc::insufficient_memory, "the host tier asks for " + gib(options.host_tier_bytes) +
                                              " of memory, available are " + gib(available)};
}

}  // namespace

tl::expected<engine_plan, error> plan_engine(const runtime_options& options, const gpu::device& device,
                                             const model_executor& model, std::uint64_t available_host_bytes) {
  if (auto fault = check_options(options)) return tl::unexpected(*fault);
  engine_plan plan;
  auto& config = plan.scheduler;
  config.model = model.info();
  config.kv = model.kv(options.block_size);
  if (auto fault = check_groups(config.kv)) return tl::unexpected(*fault);
  take_policies(options, config);
  auto fault = resolve_pool(options, device, plan);
  if (!fault) fault = resolve_model_len(options, config);
  if (!fault) fault = resolve_tier(options, available_host_bytes, plan);
  if (fault) return tl::unexpected(*fault);
  return plan;
}

}  // namespace sluice::inline v0
