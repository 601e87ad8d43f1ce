// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/step_planner.hpp>

#include <algorithm>
#include <cassert>

#include <sluice/actors/scheduler/pool_overlay.hpp>
#include <sluice/actors/scheduler/prefix_match.hpp>

namespace sluice::inline v0 {

namespace {

class planner {
 public:
  planner(const scheduler_state& state, step_id step)
      : state_(state), overlay_(state.pool), budget_(state.config.max_num_batched_tokens),
        next_load_id_(state.ledger.next_id()) {
    plan_.step = step;
  }

  step_plan run() {
    collect_runnable();
    for (auto& request : runnable_)
      if (request != nullptr && !schedule(*request)) request = nullptr;
    if (plan_.preempted.empty()) admit_waiting();
    std::sort(plan_.reused_stores.begin(), plan_.reused_stores.end());
    const auto last = std::unique(plan_.reused_stores.begin(), plan_.reused_stores.end());
    plan_.reused_stores.erase(last, plan_.reused_stores.end());
    return std::move(plan_);
  }

 private:
  // -- requests that hold blocks -------------------------------------------------------------------------------

  /// Running requests, then loaded ones.
  void collect_runnable() {
    for (auto phase : {request_phase::running, request_phase::loading})
      for (const auto* request : state_.requests.active())
        if (request->phase == phase && state_.ledger.loads_of(request->params.id).empty())
          runnable_.push_back(request);
    num_active_ = state_.requests.num_active();
  }

  /// False when the request can never get the blocks it needs.
  bool schedule(const request_record& request) {
    if (budget_ == 0) return true;
    const auto first = request.num_dispatched_tokens;
    auto num_tokens = std::min(request.num_tokens() - first, budget_);
    while (num_new_blocks(request, first + num_tokens) > overlay_.num_allocatable() && preempt_youngest(request)) {
    }
    num_tokens = std::min(num_tokens, num_tokens_that_fit(request, first));
    if (num_tokens > 0) {
      add_entry(request, first, num_tokens, tables_of(request));
    } else if (cannot_ever_fit(request)) {
      plan_.failures.push_back({request.params.id, errc::out_of_blocks});
      return false;
    }
    return true;
  }

  /// Takes the youngest request that is younger than `request` out of the plan. False when there is none.
  bool preempt_youngest(const request_record& request) {
    std::size_t youngest = runnable_.size();
    for (std::size_t i = 0; i < runnable_.size(); ++i)
      if (runnable_[i] != nullptr && runnable_[i]->arrival > request.arrival &&
          (youngest == runnable_.size() || runnable_[i]->arrival > runnable_[youngest]->arrival))
        youngest = i;
    if (youngest == runnable_.size()) return false;
    const auto& victim = *runnable_[youngest];
    remove_entry(victim);
    for (const auto& group : victim.groups)
      for (auto block = group.table.rbegin(); block != group.table.rend(); ++block) overlay_.release(*block);
    plan_.preempted.push_back(victim.params.id);
    runnable_[youngest] = nullptr;
    --num_active_;
    return true;
  }

  /// A loaded request may be older than a running one that has its entry already.
  void remove_entry(const request_record& victim) {
    auto is_victims = [&](const planned_entry& entry) { return entry.request == victim.params.id; };
    const auto found = std::find_if(plan_.entries.begin(), plan_.entries.end(), is_victims);
    if (found == plan_.entries.end()) return;
    budget_ += found->num_tokens;
    for (const auto& blocks : found->new_blocks)
      for (auto block : blocks) overlay_.release(block);
    plan_.entries.erase(found);
  }

  // -- waiting requests ----------------------------------------------------------------------------------------

  /// Only when the plan preempts nobody: what a victim gives up is for older requests, and then for itself.
  void admit_waiting() {
    sum_outstanding();
    state_.requests.for_each_waiting([this](const request_record& request) { return consider(request); });
  }

  /// What the requests that hold blocks still need for tokens they already know.
  void sum_outstanding() {
    for (const auto* request : state_.requests.active())
      num_outstanding_ += num_new_blocks(*request, request->num_tokens());
    for (const auto& entry : plan_.entries)
      for (const auto& blocks : entry.new_blocks) num_outstanding_ -= static_cast<std::uint32_t>(blocks.size());
  }

  /// Admits a waiting request if it can be. False ends the scan.
  bool consider(const request_record& request) {
    const auto id = request.params.id;
    if (num_active_ >= state_.config.max_num_seqs) return false;
    if (!state_.ledger.stores_of(id).empty()) return wait(request, waiting_reason::transfers_pending);
    if (cannot_ever_fit(request)) {
      plan_.failures.push_back({id, errc::out_of_blocks});
      return true;
    }
    const auto match = match_prefix(state_, overlay_, planned_loading_, request);
    if (joins_older_load_unreported(request, match)) return wait(request, waiting_reason::load_in_flight);
    const auto is_loading = !match.joined_loads.empty() || match.num_tier_blocks > 0;
    if (!is_loading && budget_ == 0) return false;
    if (!fits(request, match)) {
      wait(request, waiting_reason::no_blocks);
      return plan_.entries.empty();
    }
    admit(request, match);
    return true;
  }

  /// A plan was withdrawn and this request's preemption is still to be reported: until then a load that it waited on
  /// would look like one it should not have, unless this plan creates it.
  bool joins_older_load_unreported(const request_record& request, const prefix_match& match) const {
    const auto& unreported = state_.unreported_preemptions;
    if (std::find(unreported.begin(), unreported.end(), request.params.id) == unreported.end()) return false;
    const auto first_of_plan = state_.ledger.next_id();
    return std::any_of(match.joined_loads.begin(), match.joined_loads.end(),
                       [&](transfer_id load) { return load < first_of_plan; });
  }

  bool wait(const request_record& request, waiting_reason reason) {
    if (request.reason != reason) plan_.waits.push_back({request.params.id, reason});
    return true;
  }

  bool fits(const request_record& request, const prefix_match& match) const {
    auto num_needed = state_.config.num_blocks_for(0, request.num_tokens()) - match.num_shared() + num_outstanding_;
    for (auto block : match.device_blocks) num_needed += overlay_.is_allocatable(block);
    return num_needed <= overlay_.num_allocatable();
  }

  void admit(const request_record& request, const prefix_match& match) {
    planned_admission admission{request.params.id, match.device_blocks, match.joined_blocks, match.joined_loads,
                                std::nullopt, match.num_computed_tokens, match.epoch};
    for (auto block : match.device_blocks) overlay_.share(block);
    for (auto block : match.joined_blocks) overlay_.share(block);
    auto num_held = match.num_shared();
    if (match.num_tier_blocks > 0) {
      admission.load = plan_load(request, match);
      num_held += match.num_tier_blocks;
    }
    touch_chunks(request, match);
    ++num_active_;
    plan_.admissions.push_back(std::move(admission));
    const auto num_missing = state_.config.num_blocks_for(0, request.num_tokens()) - num_held;
    num_outstanding_ += num_missing;
    if (plan_.admissions.back().is_loading()) return;
    const auto num_tokens = std::min(request.num_tokens() - match.num_computed_tokens, budget_);
    add_entry(request, match.num_computed_tokens, num_tokens, {num_held});
    for (const auto& blocks : plan_.entries.back().new_blocks)
      num_outstanding_ -= static_cast<std::uint32_t>(blocks.size());
  }

  planned_load plan_load(const request_record& request, const prefix_match& match) {
    planned_load load{next_load_id_, group_id{0}, match.num_shared(), {}, {}, match.tier_chunks,
                      match.recomputes_last_block};
    ++next_load_id_.value;
    for (std::uint32_t i = 0; i < match.num_tier_blocks; ++i) {
      load.blocks.push_back(allocate());
      load.keys.push_back(request.groups[0].keys[load.first_block + i]);
      const bool is_private = load.recomputes_last_block && i + 1 == match.num_tier_blocks;
      if (!is_private) planned_loading_[load.keys.back()] = {load.id, load.blocks.back()};
    }
    return load;
  }

  /// The tier's copies of what the device already has are as wanted as the device's own.
  void touch_chunks(const request_record& request, const prefix_match& match) {
    if (state_.offload_tier() == nullptr) return;
    const auto num_chunks = static_cast<std::uint32_t>(match.device_blocks.size()) / state_.config.blocks_per_chunk;
    for (std::uint32_t chunk = 0; chunk < num_chunks; ++chunk)
      plan_.touched.push_back(key_of_chunk(state_, request, 0, chunk));
  }

  // -- blocks --------------------------------------------------------------------------------------------------

  /// The next block for writing; stores that still read it are flushed first.
  block_id allocate() {
    const auto block = overlay_.allocate();
    const auto readers = state_.ledger.stores_reading(block);
    plan_.reused_stores.insert(plan_.reused_stores.end(), readers.begin(), readers.end());
    return block;
  }

  void add_entry(const request_record& request, std::uint32_t first, std::uint32_t num_tokens,
                 const std::vector<std::uint32_t>& num_held) {
    planned_entry entry{request.params.id, request.attempt, first, num_tokens,
                        first + num_tokens == request.num_tokens(), {}};
    for (std::size_t g = 0; g < num_held.size(); ++g) {
      auto& blocks = entry.new_blocks.emplace_back();
      while (num_held[g] + blocks.size() < state_.config.num_blocks_for(g, first + num_tokens))
        blocks.push_back(allocate());
    }
    budget_ -= num_tokens;
    plan_.entries.push_back(std::move(entry));
  }

  static std::vector<std::uint32_t> tables_of(const request_record& request) {
    std::vector<std::uint32_t> sizes;
    for (const auto& group : request.groups) sizes.push_back(static_cast<std::uint32_t>(group.table.size()));
    return sizes;
  }

  /// Blocks that the request lacks to hold `num_tokens` tokens.
  std::uint32_t num_new_blocks(const request_record& request, std::uint32_t num_tokens) const {
    std::uint32_t num_new = 0;
    for (std::size_t g = 0; g < request.groups.size(); ++g) {
      const auto num_held = static_cast<std::uint32_t>(request.groups[g].table.size());
      const auto num_needed = state_.config.num_blocks_for(g, num_tokens);
      if (num_needed > num_held) num_new += num_needed - num_held;
    }
    return num_new;
  }

  /// How many tokens from `first` on the request's own blocks and the allocatable ones hold. One group.
  std::uint32_t num_tokens_that_fit(const request_record& request, std::uint32_t first) const {
    const auto num_blocks = static_cast<std::uint32_t>(request.groups[0].table.size()) + overlay_.num_allocatable();
    const auto num_tokens = std::uint64_t{num_blocks} * state_.config.block_size(0);
    return num_tokens > first ? static_cast<std::uint32_t>(std::min<std::uint64_t>(num_tokens - first, ~0U)) : 0;
  }

  bool cannot_ever_fit(const request_record& request) const {
    const auto num_quarantined = state_.pool.counts().quarantined;
    return num_quarantined > 0 && state_.config.num_blocks_for(0, request.num_tokens()) + num_quarantined >
                                      state_.pool.num_usable();
  }

  const scheduler_state& state_;
  pool_overlay overlay_;
  step_plan plan_;
  std::uint32_t budget_;
  transfer_id next_load_id_;
  std::vector<const request_record*> runnable_;  // null where a victim was taken out
  planned_loading planned_loading_;
  std::size_t num_active_ = 0;
  std::uint32_t num_outstanding_ = 0;
};

}  // namespace

step_plan plan_step(const scheduler_state& state, step_id step) { return planner(state, step).run(); }

}  // namespace sluice::inline v0
