// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/metric_families.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace sluice::inline v0 {

namespace {

using label_list = std::vector<prometheus::ClientMetric::Label>;

struct series {
  label_list labels;
  std::uint64_t value;
};

class family_list {
 public:
  void counter(const char* name, const char* help, std::initializer_list<series> all) {
    add(name, help, prometheus::MetricType::Counter, all);
  }
  void gauge(const char* name, const char* help, std::initializer_list<series> all) {
    add(name, help, prometheus::MetricType::Gauge, all);
  }
  std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  void add(const char* name, const char* help, prometheus::MetricType type, std::initializer_list<series> all) {
    prometheus::MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = type;
    for (const auto& one : all) {
      prometheus::ClientMetric metric;
      metric.label = one.labels;
      (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) =
          static_cast<double>(one.value);
      family.metric.push_back(std::move(metric));
    }
    families_.push_back(std::move(family));
  }

  std::vector<prometheus::MetricFamily> families_;
};

void add_requests(family_list& list, const engine_numbers& n) {
  const auto& t = n.totals;
  list.counter("sluice_requests_total", "Requests that ended, by reason.",
               {{{{"reason", "stop"}}, t.finished_stop},
                {{{"reason", "length"}}, t.finished_length},
                {{{"reason", "abort"}}, t.finished_abort},
                {{{"reason", "error"}}, t.finished_error}});
  list.gauge("sluice_requests", "Requests in the engine, by state.",
             {{{{"state", "waiting"}}, n.requests_waiting},
              {{{"state", "loading"}}, n.requests_loading},
              {{{"state", "running"}}, n.requests_running}});
  list.counter("sluice_prompt_tokens_total", "Prompt tokens of accepted requests.", {{{}, t.prompt_tokens}});
  list.counter("sluice_generation_tokens_total", "Tokens sampled.", {{{}, t.generation_tokens}});
  list.counter("sluice_recomputed_tokens_total", "Tokens computed again after a preemption.",
               {{{}, t.recomputed_tokens}});
  list.counter("sluice_preemptions_total", "Preemptions, by cause.",
               {{{{"cause", "capacity"}}, t.preemptions_capacity},
                {{{"cause", "priority"}}, t.preemptions_priority},
                {{{"cause", "reset"}}, t.preemptions_reset},
                {{{"cause", "pause"}}, t.preemptions_pause}});
}

void add_prefix_cache(family_list& list, const engine_numbers& n) {
  const auto& t = n.totals;
  list.counter("sluice_prefix_queries_tokens_total", "Tokens looked up at a request's first admission, by tier.",
               {{{{"tier", "device"}}, t.device_query_tokens}, {{{"tier", "host"}}, t.host_query_tokens}});
  list.counter("sluice_prefix_hits_tokens_total", "Tokens found at a request's first admission, by tier.",
               {{{{"tier", "device"}}, t.device_hit_tokens}, {{{"tier", "host"}}, t.host_hit_tokens}});
  list.counter("sluice_evictions_total", "Blocks (device) and chunks (host) whose content was given up for other.",
               {{{{"tier", "device"}}, t.device_evictions}, {{{"tier", "host"}}, t.host_evictions}});
  list.counter("sluice_resets_total", "Resets of caches, by what was named and whether all of it was reset.",
               {{{{"scope", "device"}, {"result", "success"}}, t.resets_device_success},
                {{{"scope", "device"}, {"result", "refused"}}, t.resets_device_refused},
                {{{"scope", "tiers"}, {"result", "success"}}, t.resets_tiers_success},
                {{{"scope", "tiers"}, {"result", "refused"}}, t.resets_tiers_refused},
                {{{"scope", "all"}, {"result", "success"}}, t.resets_all_success},
                {{{"scope", "all"}, {"result", "refused"}}, t.resets_all_refused}});
}

series transfers(const char* direction, const char* result, std::uint64_t value) {
  return {{{"direction", direction}, {"tier", "host"}, {"result", result}}, value};
}

void add_transfers(family_list& list, const engine_numbers& n) {
  const auto& t = n.totals;
  list.counter("sluice_offload_bytes_total", "Bytes of transfers that went well.",
               {{{{"direction", "load"}, {"tier", "host"}}, t.loaded_bytes},
                {{{"direction", "store"}, {"tier", "host"}}, t.stored_bytes}});
  list.counter("sluice_offload_transfers_total", "Transfers that ended, by result.",
               {transfers("load", "ok", t.loads_ok), transfers("load", "failed", t.loads_failed),
                transfers("load", "timeout", t.loads_timed_out), transfers("load", "stale", t.loads_stale),
                transfers("store", "ok", t.stores_ok), transfers("store", "failed", t.stores_failed),
                transfers("store", "timeout", t.stores_timed_out), transfers("store", "stale", t.stores_stale)});
  list.counter("sluice_refused_offers_total", "Offers of chunks that a tier had no room for.",
               {{{{"tier", "host"}}, t.refused_offers}});
  list.counter("sluice_actor_restarts_total", "Transfer actors that ended and got a successor.",
               {{{{"actor", "load"}}, t.load_actor_restarts}, {{{"actor", "store"}}, t.store_actor_restarts}});
  list.gauge("sluice_transfers_in_flight", "Transfers that have not settled.",
             {{{{"direction", "load"}}, n.loads_in_flight}, {{{"direction", "store"}}, n.stores_in_flight}});
}

void add_memory(family_list& list, const engine_numbers& n) {
  list.gauge("sluice_blocks", "Device blocks, by state.",
             {{{{"state", "free"}}, n.blocks.free},
              {{{"state", "cached"}}, n.blocks.cached},
              {{{"state", "held"}}, n.blocks.held},
              {{{"state", "quarantined"}}, n.blocks.quarantined}});
  list.gauge("sluice_slots", "Slots of a tier, by state.",
             {{{{"tier", "host"}, {"state", "free"}}, n.slots.free},
              {{{"tier", "host"}, {"state", "pending"}}, n.slots.pending},
              {{{"tier", "host"}, {"state", "ready"}}, n.slots.ready},
              {{{"tier", "host"}, {"state", "draining"}}, n.slots.draining}});
  list.gauge("sluice_slots_pinned", "Slots that a transfer reads or writes.", {{{{"tier", "host"}}, n.slots.pinned}});
}

void add_steps(family_list& list, const engine_numbers& n) {
  const auto& t = n.totals;
  list.counter("sluice_steps_total", "Steps dispatched.", {{{}, t.steps}});
  list.counter("sluice_boundaries_total", "Step boundaries opened.", {{{}, t.boundaries}});
  list.counter("sluice_withdrawn_plans_total", "Plans whose boundary failed.", {{{}, t.withdrawn_plans}});
  list.counter("sluice_flushed_stores_total", "Stores that a boundary waited for.", {{{}, t.flushed_stores}});
  list.counter("sluice_boundary_excluded_loads_total", "Loads of the same step that a boundary subtracted.",
               {{{}, t.boundary_excluded_loads}});
  list.counter("sluice_invariant_violations_total", "Times the engine found its own state inconsistent.",
               {{{}, t.invariant_violations}});
}

}  // namespace

std::vector<prometheus::MetricFamily> make_metric_families(const engine_numbers& numbers) {
  family_list list;
  add_requests(list, numbers);
  add_prefix_cache(list, numbers);
  add_transfers(list, numbers);
  add_memory(list, numbers);
  add_steps(list, numbers);
  return list.take();
}

}  // namespace sluice::inline v0
