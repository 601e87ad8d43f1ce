// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/engine_plan.hpp>

#include <algorithm>
#include <iomanip>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace sluice::inline v0 {

namespace {

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

std::optional<error> check_options(const runtime_options& options) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max() - 1;
  std::optional<error> fault;
  auto check = [&](const char* option, std::uint64_t given, std::uint64_t least, std::uint64_t allowed) {
    if (!fault) fault = check_range(option, given, least, allowed);
  };
  check("block_size", options.block_size, 1, 1024);
  check("blocks_per_chunk", options.blocks_per_chunk, 1, 64);
  if (options.num_device_blocks != 0) check("num_device_blocks", options.num_device_blocks, 2, most);
  check("max_num_seqs", options.max_num_seqs, 1, most);
  check("max_num_batched_tokens", options.max_num_batched_tokens, 1, most);
  check("num_actor_threads", options.num_actor_threads, 1, 1024);
  check("flush_timeout in ms", static_cast<std::uint64_t>(std::max<std::int64_t>(options.flush_timeout.count(), 0)), 1,
        24ULL * 3600 * 1000);
  if (!fault && !(options.device_memory_fraction > 0 && options.device_memory_fraction <= 1))
    fault = error{errc::invalid_argument, "device_memory_fraction is " + text_of(options.device_memory_fraction) +
                                              ", allowed is above 0 and at most 1"};
  return fault;
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

std::optional<error> resolve_model_len(const runtime_options& options, scheduler_config& config) {
  const auto num_pool_tokens = std::uint64_t{config.num_device_blocks - 1} * config.block_size(0);
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.model.max_model_len, num_pool_tokens));
  config.max_model_len = options.max_model_len == 0 ? most : options.max_model_len;
  if (options.max_model_len == 0) return std::nullopt;
  return check_range<std::uint32_t>("max_model_len", options.max_model_len, 1, most);
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
  if (config.kv.groups.size() != 1 || config.kv.groups[0].attention != kv_group_spec::kind::full_attention)
    return tl::unexpected(error{errc::invalid_argument, "the model has " + text_of(config.kv.groups.size()) +
                                                            " KV groups, allowed is one of full attention"});
  config.blocks_per_chunk = options.blocks_per_chunk;
  config.enable_prefix_caching = options.enable_prefix_caching;
  config.max_num_seqs = options.max_num_seqs;
  config.max_num_batched_tokens = options.max_num_batched_tokens;
  auto fault = resolve_pool(options, device, plan);
  if (!fault) fault = resolve_model_len(options, config);
  if (!fault) fault = resolve_tier(options, available_host_bytes, plan);
  if (fault) return tl::unexpected(*fault);
  return plan;
}

}  // namespace sluice::inline v0
