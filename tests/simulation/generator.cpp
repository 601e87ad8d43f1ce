// SPDX-License-Identifier: Apache-2.0
#include "generator.hpp"

#include <numeric>

namespace sluice::simulation {

namespace {

using weights = std::array<std::uint32_t, event_names.size()>;

//   sub ab res pau sle wak res sta end fai ref com tur of sta adv wai kl ks rc ol set
constexpr weights moods[] = {
    {12, 2, 3, 1, 0, 1, 1, 2, 18, 2, 1, 12, 30, 20, 2, 1, 0, 0, 0, 0, 1, 1},   // everyday
    {30, 2, 1, 0, 0, 1, 1, 1, 8, 1, 0, 14, 30, 20, 2, 1, 0, 0, 0, 0, 0, 0},    // crowded
    {10, 1, 2, 0, 0, 1, 1, 5, 3, 0, 0, 14, 30, 20, 2, 4, 3, 0, 0, 0, 0, 0},    // copies that take long, or for ever
    {12, 2, 2, 0, 0, 1, 1, 4, 8, 12, 6, 12, 25, 20, 2, 1, 0, 0, 0, 3, 0, 1},   // copies that fail
    {10, 3, 14, 0, 0, 1, 1, 2, 10, 1, 0, 12, 25, 20, 4, 2, 0, 0, 0, 0, 0, 0},  // resets
    {10, 2, 4, 6, 5, 8, 8, 2, 12, 1, 0, 12, 25, 20, 2, 4, 1, 0, 0, 0, 0, 1},   // control
    {12, 10, 2, 1, 0, 1, 1, 2, 10, 1, 0, 12, 25, 20, 2, 1, 0, 0, 0, 0, 0, 0},  // clients that go away
    {12, 2, 3, 1, 1, 2, 2, 2, 12, 2, 1, 12, 25, 20, 2, 3, 0, 2, 2, 0, 0, 1},   // actors that die
    {14, 1, 5, 0, 0, 1, 1, 1, 12, 1, 0, 16, 10, 10, 20, 1, 0, 0, 0, 0, 1, 0},  // actors that are slow
};

}  // namespace

trace generator::draw(std::size_t num_events) {
  trace drawn{draw_setup(), {}};
  draw_mood();
  for (std::size_t i = 0; i < num_events; ++i) {
    if (one_in(150)) draw_mood();
    drawn.events.push_back(draw_event());
  }
  return drawn;
}

setup generator::draw_setup() {
  setup engine;
  engine.blocks_per_chunk = 1 + below(4);
  engine.num_device_blocks = 12 + below(one_in(4) ? 60 : 16);
  engine.num_host_slots = one_in(20) ? 0 : 2 + below(one_in(4) ? 60 : 14);
  engine.group_layout = one_in(2) ? 0 : below(8);
  engine.max_num_seqs = 1 + below(7);
  engine.max_num_batched_tokens = 4 + below(60);
  engine.is_async = below(2);
  engine.holds_compute = below(2);
  engine.preemption_offload = !one_in(4);
  engine.is_priority = one_in(3);
  engine.offloads_preempted_only = one_in(8);
  engine.offload_prompt_only = one_in(8);
  engine.stores_whole_requests = one_in(6);
  engine.store_threshold = one_in(6) ? 2 : 0;
  engine.recompute_budget = one_in(3) ? below(3) : 0;
  engine.is_arc = one_in(3);
  engine.match_chunk_beginnings = !one_in(4);
  engine.enable_prefix_caching = !one_in(20);
  engine.retention_interval = one_in(5) ? 4 * (1 + below(8)) : 0;
  engine.lookup_timeout_s = 1 + below(5);
  engine.transfer_timeout_s = one_in(2) ? 60 : 2 + below(10);
  engine.end_one_in = one_in(3) ? 12 : 0;
  return engine;
}

void generator::draw_mood() { weights_ = moods[below(std::size(moods))]; }

event generator::draw_event() {
  auto dice = below(std::accumulate(weights_.begin(), weights_.end(), 0U));
  std::size_t at = 0;
  while (dice >= weights_[at]) dice -= weights_[at++];
  const auto any = [this] { return below(64); };
  switch (const auto kind = static_cast<event_kind>(at)) {
    case event_kind::submit: return draw_submit();
    case event_kind::reset: return make(kind, {below(16), one_in(3) ? 1 + below(4) : 0});
    case event_kind::pause: return make(kind, {below(8), below(4), 1 + below(50)});
    case event_kind::sleep: return make(kind, {below(2), below(8), below(2), 1 + below(50)});
    case event_kind::wake: return make(kind, {one_in(3) ? below(4) : 0});
    case event_kind::start_copies: return make(kind, {any(), 1 + below(3)});
    case event_kind::fail_copies: return make(kind, {any(), below(4), below(2)});
    case event_kind::compute: return make(kind, {1 + below(6)});
    case event_kind::turns: return make(kind, {1 + below(16)});
    case event_kind::turn_of: return make(kind, {any(), 1 + below(3)});
    case event_kind::starve: return make(kind, {one_in(2) ? 0 : below(5), 2 + below(60)});
    case event_kind::wait: return make(kind, {1 + below(10), 200 + below(9000)});
    case event_kind::advance: return make(kind, {one_in(3) ? 1000 + below(70'000) : 1 + below(1500)});
    case event_kind::abort:
    case event_kind::end_copies:
    case event_kind::refuse_copies: return make(kind, {any()});
    case event_kind::resume:
    case event_kind::kill_loads:
    case event_kind::kill_stores:
    case event_kind::refuse_compute:
    case event_kind::older_load:
    case event_kind::settle: break;
  }
  return make(static_cast<event_kind>(at));
}

event generator::draw_submit() {
  const auto prompt = one_in(12) ? 30 + below(90) : 1 + below(34);
  return make(event_kind::submit, {prompt, below(3), one_in(2) ? below(6) : 0, 1 + below(one_in(6) ? 40 : 12),
                                   one_in(3) ? below(64) : 0, below(3)});
}

}  // namespace sluice::simulation
