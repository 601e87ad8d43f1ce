// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/step_planner.hpp>

#include <algorithm>
#include <cassert>

#include <sluice/actors/rules.hpp>
#include <sluice/actors/scheduler/plan_blocks.hpp>
#include <sluice/actors/scheduler/prefix_match.hpp>

namespace sluice::inline v0 {

namespace {

class planner {
 public:
  planner(const scheduler_state& state, step_id step)
      : state_(state), blocks_(state), budget_(state.config.max_num_batched_tokens),
        next_load_id_(state.ledger.next_id()) {
    plan_.step = step;
  }

  step_plan run() {
    if (!state_.limits.computes) return std::move(plan_);
    collect_runnable();
    for (auto& request : runnable_)
      if (request != nullptr && !schedule(*request)) request = nullptr;
    // What a victim gives up is for requests before it, and then for itself.
    if ((plan_.preempted.empty() || !holds(rule::admit_no_victim)) && state_.limits.admits) admit_waiting();
    find_reused_stores();
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

  /// Tokens that are known, or on the way, and not computed by what was dispatched. None for a request that ends with
  /// what is on the way.
  std::uint32_t num_to_compute(const request_record& request) const {
    const auto num_tokens = request.num_planned_tokens();
    const bool ends = request.num_pending_tokens > 0 &&
                      (request.num_output_tokens() + request.num_pending_tokens >= request.params.max_tokens ||
                       num_tokens >= state_.config.max_model_len);
    return ends ? 0 : num_tokens - request.num_dispatched_tokens;
  }

  /// False when the request can never get the blocks it needs.
  bool schedule(const request_record& request) {
    auto num_tokens = std::min(num_to_compute(request), budget_);
    if (num_tokens == 0) return true;
    const auto first = request.num_dispatched_tokens;
    while (blocks_.num_missing(request, first + num_tokens) > blocks_.num_allocatable() && preempt_last(request)) {
    }
    num_tokens = blocks_.num_tokens_that_fit(request, first, num_tokens);
    if (num_tokens > 0) {
      add_entry(request, first, num_tokens, tables_of(request));
    } else if (blocks_.cannot_ever_fit(request)) {
      plan_.failures.push_back({request.params.id, errc::out_of_blocks});
      return false;
    }
    return true;
  }

  /// Takes the last request that comes after `request` out of the plan. False when there is none.
  bool preempt_last(const request_record& request) {
    const request_record** last = nullptr;
    for (auto& other : runnable_)
      if (other != nullptr && state_.requests.is_before(request, *other) &&
          (last == nullptr || state_.requests.is_before(**last, *other)))
        last = &other;
    if (last == nullptr) return false;
    const auto& victim = **last;
    remove_entry(victim);
    blocks_.release(victim);
    plan_.preempted.push_back({victim.params.id, victim.params.priority > request.params.priority &&
                                                         state_.config.order == scheduling_policy::priority
                                                     ? preemption_cause::priority
                                                     : preemption_cause::capacity});
    *last = nullptr;
    --num_active_;
    return true;
  }

  /// A loaded request may come before a running one that has its entry already.
  void remove_entry(const request_record& victim) {
    auto is_victims = [&](const planned_entry& entry) { return entry.request == victim.params.id; };
    const auto found = std::find_if(plan_.entries.begin(), plan_.entries.end(), is_victims);
    if (found == plan_.entries.end()) return;
    budget_ += found->num_tokens;
    for (const auto& blocks : found->new_blocks) blocks_.release(blocks);
    plan_.entries.erase(found);
  }

  // -- waiting requests ----------------------------------------------------------------------------------------

  void admit_waiting() {
    blocks_.sum_outstanding(plan_.entries);
    state_.requests.for_each_waiting([this](const request_record& request) { return consider(request); });
  }

  /// Admits a waiting request if it can be. False ends the scan.
  bool consider(const request_record& request) {
    const auto id = request.params.id;
    if (num_active_ >= state_.config.max_num_seqs) return false;
    if (holds(rule::wait_for_own_stores) && !state_.ledger.stores_of(id).empty())
      return wait(request, {id, waiting_reason::transfers_pending, {}, 0, {}});
    if (blocks_.cannot_ever_fit(request)) {
      plan_.failures.push_back({id, errc::out_of_blocks});
      return true;
    }
    if (is_still_refused(request)) return scans_on();
    if (budget_ == 0 && request.needs_budget) return false;
    if (!state_.limits.creates_loads && request.reason == waiting_reason::loads_held) return true;
    const auto match = match_prefix(state_, blocks_.overlay(), planned_loading_, request);
    if (match.wait != waiting_reason::none) return wait(request, {id, match.wait, match.awaited, 0, {}});
    if (joins_older_load_unreported(request, match)) return wait(request, {id, waiting_reason::load_in_flight, {}, 0, {}});
    const bool is_loading = !match.joined_loads.empty() || match.loads();
    if (is_loading && !state_.limits.creates_loads) return wait(request, {id, waiting_reason::loads_held, {}, 0, {}});
    if (!is_loading && budget_ == 0) {
      wait(request, {id, waiting_reason::queued, {}, 0, {}});
      return false;
    }
    if (!blocks_.fits(request, match)) {
      wait(request, {id, waiting_reason::no_blocks, {}, blocks_.num_available(), match.missing});
      return scans_on();
    }
    admit(request, match);
    return true;
  }

  /// Past a request that does not fit: only while nothing runs.
  bool scans_on() const { return plan_.entries.empty() && state_.num_steps_in_flight == 0; }

  bool is_still_refused(const request_record& request) const {
    if (!request.available_at_refusal || num_active_ == 0) return false;
    return blocks_.num_available() <= *request.available_at_refusal &&
           !(request.missing_at_refusal && state_.pool.find(*request.missing_at_refusal));
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

  /// Noted unless it says what the request's record says.
  bool wait(const request_record& request, planned_wait waits) {
    const bool is_news = request.reason != waits.reason || waits.reason == waiting_reason::no_blocks ||
                         (waits.reason == waiting_reason::queued && !request.needs_budget);
    if (is_news) plan_.waits.push_back(std::move(waits));
    return true;
  }

  void admit(const request_record& request, const prefix_match& match) {
    planned_admission admission{request.params.id, {}, match.joined_loads, std::nullopt, match.num_computed_tokens,
                                match.num_device_tokens, match.epoch};
    std::vector<std::uint32_t> table_sizes;
    for (const auto& group : match.groups) {
      blocks_.share(group.shared);
      admission.tables.push_back({group.num_passed, group.shared});
      table_sizes.push_back(group.num_passed + static_cast<std::uint32_t>(group.shared.size()) + group.num_loaded);
    }
    if (match.loads()) admission.load = plan_load(request, match);
    touch_chunks(request, match);
    ++num_active_;
    blocks_.expect(request, match);
    plan_.admissions.push_back(std::move(admission));
    if (plan_.admissions.back().is_loading()) return;
    const auto num_tokens = std::min(request.num_tokens() - match.num_computed_tokens, budget_);
    add_entry(request, match.num_computed_tokens, num_tokens, table_sizes);
    for (const auto& blocks : plan_.entries.back().new_blocks) blocks_.got(blocks.size());
  }

  planned_load plan_load(const request_record& request, const prefix_match& match) {
    planned_load load{next_load_id_, {}};
    ++next_load_id_.value;
    for (std::size_t g = 0; g < match.groups.size(); ++g) {
      const auto& group = match.groups[g];
      if (group.num_loaded == 0) continue;
      auto& part = load.parts.emplace_back();
      part.group = group_id{static_cast<std::uint16_t>(g)};
      part.first_block = group.first_loaded;
      part.chunks = group.tier_chunks;
      for (std::uint32_t i = 0; i < group.num_loaded; ++i) {
        const auto position = part.first_block + i;
        part.blocks.push_back(blocks_.allocate());
        part.keys.push_back(request.groups[g].keys[position]);
        const bool is_whole = (position + 1) * state_.config.block_size(g) <= match.num_computed_tokens;
        if (is_whole) planned_loading_[part.keys.back()] = {load.id, part.blocks.back()};
      }
    }
    return load;
  }

  /// The tier's copies of what the device already has are as wanted as the device's own.
  void touch_chunks(const request_record& request, const prefix_match& match) {
    if (state_.offload_tier() == nullptr) return;
    for (std::size_t g = 0; g < match.groups.size(); ++g) {
      const auto shape = state_.config.shape(g);
      const auto& group = match.groups[g];
      auto chunk = (group.num_passed + shape.blocks_per_chunk - 1) / shape.blocks_per_chunk;
      for (; (chunk + 1) * shape.tokens_per_chunk() <= match.num_device_tokens; ++chunk)
        plan_.touched.push_back(key_of_chunk(state_, request, g, chunk));
    }
  }

  // -- entries -------------------------------------------------------------------------------------------------

  void add_entry(const request_record& request, std::uint32_t first, std::uint32_t num_tokens,
                 const std::vector<std::uint32_t>& table_sizes) {
    planned_entry entry{request.params.id, request.attempt, first, num_tokens,
                        first + num_tokens == request.num_planned_tokens(), {}};
    for (std::size_t g = 0; g < table_sizes.size(); ++g) {
      auto& blocks = entry.new_blocks.emplace_back();
      while (table_sizes[g] + blocks.size() < state_.config.num_blocks_for(g, first + num_tokens))
        blocks.push_back(blocks_.allocate());
    }
    budget_ -= num_tokens;
    plan_.entries.push_back(std::move(entry));
  }

  static std::vector<std::uint32_t> tables_of(const request_record& request) {
    std::vector<std::uint32_t> sizes;
    for (const auto& group : request.groups) sizes.push_back(static_cast<std::uint32_t>(group.table.size()));
    return sizes;
  }

  /// Stores that read a block which the plan, in its final form, gives out for writing.
  void find_reused_stores() {
    if (!holds(rule::flush_reused)) return;
    auto& reused = plan_.reused_stores;
    const auto look = [&](const std::vector<block_id>& blocks) {
      for (auto block : blocks) {
        const auto readers = state_.ledger.stores_reading(block);
        reused.insert(reused.end(), readers.begin(), readers.end());
      }
    };
    for (const auto& admission : plan_.admissions)
      if (admission.load)
        for (const auto& part : admission.load->parts) look(part.blocks);
    for (const auto& entry : plan_.entries)
      for (const auto& blocks : entry.new_blocks) look(blocks);
    std::sort(reused.begin(), reused.end());
    reused.erase(std::unique(reused.begin(), reused.end()), reused.end());
  }

  const scheduler_state& state_;
  plan_blocks blocks_;
  step_plan plan_;
  std::uint32_t budget_;
  transfer_id next_load_id_;
  std::vector<const request_record*> runnable_;  // null where a victim was taken out
  planned_loading planned_loading_;
  std::size_t num_active_ = 0;
};

}  // namespace

step_plan plan_step(const scheduler_state& state, step_id step) { return planner(state, step).run(); }

}  // namespace sluice::inline v0
