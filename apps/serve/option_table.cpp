// SPDX-License-Identifier: Apache-2.0
#include "serve/option_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace sluice::serve {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;
constexpr std::uint32_t max_engine_count = std::numeric_limits<std::uint32_t>::max() - 1;
constexpr std::uint32_t max_u32 = std::numeric_limits<std::uint32_t>::max();

std::string number(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// What an option is about.
struct topic {
  std::string name;
  std::string group;
  std::string meaning;
};

template <class Field>
value_option integer(topic about, std::uint64_t least, std::uint64_t most, Field field) {
  return {about.name,
          about.group,
          about.meaning,
          "an integer from " + std::to_string(least) + " to " + std::to_string(most),
          [=](const std::string& text, server_options& into) {
            const auto value = parse_integer(text, least, most);
            if (value) field(into) = static_cast<std::remove_reference_t<decltype(field(into))>>(*value);
            return value.has_value();
          },
          [=](const server_options& from) {
            auto copy = from;
            return std::to_string(field(copy));
          }};
}

template <class Field>
value_option duration(topic about, std::uint64_t least, std::uint64_t most, std::uint64_t unit_ms, Field field) {
  return {about.name,
          about.group,
          about.meaning,
          "an integer from " + std::to_string(least) + " to " + std::to_string(most),
          [=](const std::string& text, server_options& into) {
            const auto value = parse_integer(text, least, most);
            if (value) field(into) = std::chrono::milliseconds{*value * unit_ms};
            return value.has_value();
          },
          [=](const server_options& from) {
            auto copy = from;
            return std::to_string(static_cast<std::uint64_t>(field(copy).count()) / unit_ms);
          }};
}

template <class Field>
value_option choice(topic about, std::vector<std::string> names, const std::string& remark, Field field) {
  std::string allowed;
  for (const auto& name : names) allowed += (allowed.empty() ? "" : ", ") + name;
  return {about.name,
          about.group,
          about.meaning,
          allowed + remark,
          [=](const std::string& text, server_options& into) {
            const bool is_known = std::find(names.begin(), names.end(), text) != names.end();
            if (is_known) field(into) = text;
            return is_known;
          },
          [=](const server_options& from) {
            auto copy = from;
            return field(copy);
          }};
}

/// A choice whose names stand for enumerators.
template <class Enum, class Field>
value_option policy(topic about, std::vector<std::pair<std::string, Enum>> entries, Field field) {
  std::string allowed;
  for (const auto& [name, value] : entries) allowed += (allowed.empty() ? "" : ", ") + name;
  return {about.name,
          about.group,
          about.meaning,
          allowed,
          [=](const std::string& text, server_options& into) {
            for (const auto& [name, value] : entries) {
              if (name == text) return field(into) = value, true;
            }
            return false;
          },
          [=](const server_options& from) {
            auto copy = from;
            for (const auto& [name, value] : entries) {
              if (value == field(copy)) return name;
            }
            return std::string{"?"};
          }};
}

value_option rate(topic about, double host_copy_limits::*limit) {
  return {about.name,
          about.group,
          about.meaning,
          "a number from 0 (unlimited) to 10000",
          [=](const std::string& text, server_options& into) {
            const auto value = parse_number(text, 0, 10'000);
            if (value) into.host_copy.*limit = *value;
            return value.has_value();
          },
          [=](const server_options& from) { return number(from.host_copy.*limit); }};
}

template <class Field>
value_option text(topic about, Field field) {
  return {about.name,
          about.group,
          about.meaning,
          "1 to 255 bytes",
          [=](const std::string& value, server_options& into) {
            const bool fits = !value.empty() && value.size() <= 255;
            if (fits) field(into) = value;
            return fits;
          },
          [=](const server_options& from) {
            auto copy = from;
            return field(copy);
          }};
}

value_option device_fraction() {
  return {"--gpu-memory-utilization",
          "Cache",
          "share of the device's free memory for blocks",
          "a number above 0, up to 1",
          [](const std::string& value, server_options& into) {
            const auto fraction = parse_number(value, 0, 1);
            if (!fraction || *fraction == 0) return false;
            into.engine.device_memory_fraction = *fraction;
            return true;
          },
          [](const server_options& from) { return number(from.engine.device_memory_fraction); }};
}

value_option offloading_size() {
  return {"--kv-offloading-size",
          "Cache",
          "host tier in GiB, fractions allowed; 0 turns offloading off",
          "0, or a number from 1e-09 to 1000000",
          [](const std::string& value, server_options& into) {
            const auto size = parse_number(value, 0, 1e6);
            if (!size || (*size > 0 && *size < 1e-9)) return false;  // less than a byte
            into.engine.host_tier_bytes = static_cast<std::uint64_t>(std::llround(*size * gib));
            return true;
          },
          [](const server_options& from) { return number(static_cast<double>(from.engine.host_tier_bytes) / gib); }};
}

// An option is one of these: an entry that reads `o.engine.NAME`.
#define SLUICE_FIELD(path) \
  [](server_options & o) -> auto& { return o.path; }

std::vector<value_option> server_group() {
  return {
      choice({"--model", "Server", "what to serve"}, {"tiny"}, " (paths to weights are not built yet)",
             SLUICE_FIELD(model)),
      text({"--served-model-name", "Server", "name in the API (default: the model's)"},
           SLUICE_FIELD(served_model_name)),
      text({"--host", "Server", "address to listen on"}, SLUICE_FIELD(host)),
      integer({"--port", "Server", "port to listen on; 0 picks one and prints it"}, 0, 65'535, SLUICE_FIELD(port)),
      choice({"--log-level", "Server", "least level that is logged"},
             {"trace", "debug", "info", "warn", "error", "off"}, "", SLUICE_FIELD(log_level)),
      duration({"--shutdown-timeout", "Server", "seconds that open requests get after SIGTERM"}, 0, 86'400, 1000,
               SLUICE_FIELD(shutdown_timeout)),
      integer({"--seed", "Server", "of the tiny model's weights and of requests without a seed"}, 0,
              std::numeric_limits<std::uint64_t>::max(), SLUICE_FIELD(seed)),
  };
}

std::vector<value_option> cache_group() {
  return {
      choice({"--device", "Cache", "where blocks live and the model runs"}, {"auto", "host"},
             " (cuda is not built yet)", SLUICE_FIELD(device)),
      integer({"--block-size", "Cache", "tokens per block"}, 1, 1024, SLUICE_FIELD(engine.block_size)),
      integer({"--blocks-per-chunk", "Cache", "blocks per offload unit"}, 1, 64, SLUICE_FIELD(engine.blocks_per_chunk)),
      integer({"--num-gpu-blocks-override", "Cache",
               "device blocks, the null block included; 0: from --gpu-memory-utilization"},
              0, max_u32, SLUICE_FIELD(engine.num_device_blocks)),
      device_fraction(),
  };
}

std::vector<value_option> offloading_group() {
  return {
      offloading_size(),
      policy<offload_scope>({"--offload", "Offloading", "whose chunks are stored"},
                            {{"all", offload_scope::all}, {"preempted", offload_scope::preempted}},
                            SLUICE_FIELD(engine.offload)),
      policy<store_policy>({"--store-policy", "Offloading", "which complete chunks a request offers"},
                           {{"incremental", store_policy::incremental}, {"whole-request", store_policy::whole_request}},
                           SLUICE_FIELD(engine.storing)),
      integer({"--store-threshold", "Offloading", "store a chunk from its nth sighting on; 0 and 1: at once"}, 0,
              max_engine_count, SLUICE_FIELD(engine.store_threshold)),
      policy<eviction_policy_kind>({"--eviction-policy", "Offloading", "which chunks a full host tier gives up first"},
                                   {{"lru", eviction_policy_kind::lru}, {"arc", eviction_policy_kind::arc}},
                                   SLUICE_FIELD(engine.eviction_policy)),
      integer({"--recompute-budget", "Offloading", "chunks that are rather computed than waited for"}, 0,
              max_engine_count, SLUICE_FIELD(engine.recompute_budget)),
      duration({"--transfer-timeout", "Offloading", "seconds after which a transfer is given up"}, 1, 86'400, 1000,
               SLUICE_FIELD(engine.transfer_timeout)),
      duration({"--lookup-timeout", "Offloading", "longest wait for chunks that are pending or looked up, in seconds"},
               1, 86'400, 1000, SLUICE_FIELD(engine.lookup_timeout)),
  };
}

std::vector<value_option> scheduler_group() {
  return {
      policy<scheduling_policy>({"--scheduling-policy", "Scheduler", "order of waiting requests"},
                                {{"fcfs", scheduling_policy::fcfs}, {"priority", scheduling_policy::priority}},
                                SLUICE_FIELD(engine.scheduling)),
      integer({"--max-model-len", "Scheduler", "tokens of prompt and output together; 0: what model and pool allow"}, 0,
              max_u32, SLUICE_FIELD(engine.max_model_len)),
      integer({"--max-num-seqs", "Scheduler", "running and loading requests"}, 1, max_u32,
              SLUICE_FIELD(engine.max_num_seqs)),
      integer({"--max-num-batched-tokens", "Scheduler", "tokens computed in one step"}, 1, max_u32,
              SLUICE_FIELD(engine.max_num_batched_tokens)),
      integer({"--max-queued-requests", "Scheduler", "waiting requests; beyond it clients get 503"}, 0, max_u32,
              SLUICE_FIELD(engine.max_queued_requests)),
  };
}

std::vector<value_option> simulation_group() {
  return {
      rate({"--host-copy-load-gib-s", "Simulation", "limit of host to device copies, GiB/s; 0: unlimited"},
           &host_copy_limits::load_gib_per_s),
      rate({"--host-copy-store-gib-s", "Simulation", "limit of device to host copies, GiB/s; 0: unlimited"},
           &host_copy_limits::store_gib_per_s),
      duration({"--host-copy-latency-ms", "Simulation", "added to each transfer, both directions"}, 0, 60'000, 1,
               SLUICE_FIELD(host_copy.latency)),
      duration({"--tiny-step-ms", "Simulation", "least duration of a step of the tiny model"}, 0, 60'000, 1,
               SLUICE_FIELD(tiny_step)),
      integer({"--tiny-window", "Simulation", "tokens that every second layer of the tiny model sees; 0: all"}, 0,
              max_u32, SLUICE_FIELD(tiny_window)),
  };
}

}  // namespace

const std::vector<value_option>& value_options() {
  static const auto all = [] {
    auto list = server_group();
    for (auto& group : {cache_group(), offloading_group(), scheduler_group(), simulation_group()}) {
      list.insert(list.end(), group.begin(), group.end());
    }
    return list;
  }();
  return all;
}

const std::vector<switch_option>& switch_options() {
  static const std::vector<switch_option> all{
      {"enable-prefix-caching", "Cache", "share the KV of equal prefixes", SLUICE_FIELD(engine.enable_prefix_caching)},
      {"preemption-offload", "Offloading", "store a victim's chunks before its blocks are given away",
       SLUICE_FIELD(engine.preemption_offload)},
      {"offload-prompt-only", "Offloading", "store no chunks of generated tokens, but for victims",
       SLUICE_FIELD(engine.offload_prompt_only)},
      {"async-scheduling", "Scheduler", "plan one step ahead of the results", SLUICE_FIELD(engine.async_scheduling)},
      {"refuse-while-asleep", "Scheduler", "answer 503 while the engine sleeps; else requests wait",
       SLUICE_FIELD(engine.refuse_while_asleep)},
  };
  return all;
}

#undef SLUICE_FIELD

std::optional<std::uint64_t> parse_integer(const std::string& text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < least || value > most) return std::nullopt;
  return value;
}

std::optional<double> parse_number(const std::string& text, double least, double most) {
  double value = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const bool fits = parsed.ec == std::errc{} && parsed.ptr == end && value >= least && value <= most;
  if (!fits) return std::nullopt;
  return value;
}

}  // namespace sluice::serve
