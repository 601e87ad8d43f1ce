// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/engine_control.hpp>

#include <sluice/actors/scheduler/reset_caches.hpp>

namespace sluice::inline v0 {

namespace {

constexpr const char* memory_is_changing = "the engine is giving memory back or taking it";

}  // namespace

bool engine_control::pause(const pause_engine& command, std::uint64_t ticket) {
  return begin({ticket, command.mode, command.clear_cache, command.clear_tiers, 0, false, stage::resting, {}, {}});
}

bool engine_control::sleep(const sleep_engine& command, std::uint64_t ticket) {
  return begin({ticket, command.mode, true, command.clear_tiers, command.level, false, stage::resting, {}, {}});
}

bool engine_control::begin(order next) {
  if (order_ && order_->at == stage::changing_memory)
    return answer_at_once(next.ticket, control_outcome::refused, memory_is_changing), false;
  if (order_) finish(control_outcome::cancelled);
  if (now_ != control_state::sleeping) now_ = control_state::pausing;
  state_.limits.admits = false;
  state_.limits.computes = next.mode != pause_mode::keep && now_ != control_state::sleeping;
  is_stopped_by_sleep_ = next.sleep_level > 0;
  order_ = std::move(next);
  return true;
}

void engine_control::resume(std::uint64_t ticket) {
  if (order_ && order_->at == stage::changing_memory)
    return answer_at_once(ticket, control_outcome::refused, memory_is_changing);
  if (now_ == control_state::sleeping)
    return answer_at_once(ticket, control_outcome::refused, "the engine sleeps; it must be woken up");
  if (order_) finish(control_outcome::cancelled);
  go_on();
  answer_at_once(ticket, control_outcome::done);
}

void engine_control::wake(const wake_engine& command, std::uint64_t ticket) {
  if (order_ && order_->at == stage::changing_memory)
    return answer_at_once(ticket, control_outcome::refused, memory_is_changing);
  if (now_ != control_state::sleeping) {
    if (now_ == control_state::running || is_stopped_by_sleep_) return resume(ticket);
    return answer_at_once(ticket, control_outcome::done, "the engine was not asleep; it stays paused");
  }
  if (order_) finish(control_outcome::cancelled);
  const change_memory change{false, command.weights && !has_weights_, command.kv_cache && !has_kv_cache_};
  if (!change.weights && !change.kv_cache) return answer_at_once(ticket, control_outcome::done);
  order_.emplace();
  order_->ticket = ticket;
  order_->is_wake = true;
  change_memory_now(change);
}

void engine_control::change_memory_now(const change_memory& change) {
  order_->at = stage::changing_memory;
  order_->change = change;
  if (change.weights) has_weights_ = !change.is_release;
  if (change.kv_cache) has_kv_cache_ = !change.is_release;
  memory_change_ = change;
}

bool engine_control::expire(std::uint64_t ticket) {
  if (!order_ || order_->ticket != ticket) return false;
  if (order_->at == stage::changing_memory) return true;
  if (order_->at == stage::resting) {
    order_->report.caches = {probe_device_reset(state_, order_->mode != pause_mode::wait)};
    order_->report.caches[0].reset = false;  // although nothing but a step in flight may have been in the way
  }
  for (auto& cache : order_->report.caches) cache.num_stores_in_flight = state_.ledger.num_stores();
  auto report = std::move(order_->report);
  report.outcome = control_outcome::timed_out;
  answers_.push_back({ticket, std::move(report)});
  // It still comes to rest, but clears nothing and gives nothing back: nobody is told any more.
  order_->ticket = 0;
  order_->clears_device = order_->clears_tiers = false;
  order_->sleep_level = 0;
  order_->at = stage::resting;
  return true;
}

bool engine_control::is_at_rest(bool is_step_open) const {
  if (is_step_open || state_.ledger.num_loads() > 0) return false;
  return order_->mode != pause_mode::wait || state_.requests.num_active() == 0;
}

/// False when a cache could not be reset.
bool engine_control::clear_caches() {
  if (!order_->clears_device && !order_->clears_tiers) return true;
  auto report = reset_caches(state_, {order_->clears_device, order_->clears_tiers, true, preemption_cause::pause});
  order_->report.caches = std::move(report.caches);
  return report.success;
}

void engine_control::advance(bool is_step_open) {
  if (!order_) return;
  if (order_->at == stage::resting) {
    if (!is_at_rest(is_step_open)) return;
    const bool is_cleared = clear_caches();
    state_.limits.computes = false;
    if (now_ == control_state::pausing) now_ = control_state::paused;
    if (!is_cleared) return finish(control_outcome::refused, "a cache could not be reset");
    if (order_->sleep_level == 0) return finish(control_outcome::done);
    order_->at = stage::draining_stores;
  }
  if (order_->at != stage::draining_stores || !state_.ledger.records().empty()) return;
  const change_memory change{true, order_->sleep_level >= 2 && has_weights_, has_kv_cache_};
  if (!change.weights && !change.kv_cache) return finish(control_outcome::done);
  now_ = control_state::sleeping;
  change_memory_now(change);
}

void engine_control::memory_has_changed(const memory_changed& message) {
  if (!order_ || order_->at != stage::changing_memory) return;
  if (message.code != errc::none) {
    // What became of it is not known: it counts as given back, and taking back what is there does no harm.
    if (order_->change.weights) has_weights_ = false;
    if (order_->change.kv_cache) has_kv_cache_ = false;
    return finish(control_outcome::failed, message.message);
  }
  const bool is_awake = order_->is_wake && has_weights_ && has_kv_cache_;
  finish(control_outcome::done);
  if (is_awake) go_on();
}

void engine_control::go_on() {
  now_ = control_state::running;
  state_.limits.admits = state_.limits.computes = true;
}

void engine_control::finish(control_outcome outcome, std::string message) {
  auto report = std::move(order_->report);
  report.outcome = outcome;
  report.message = std::move(message);
  if (order_->ticket != 0) answers_.push_back({order_->ticket, std::move(report)});
  order_.reset();
}

void engine_control::answer_at_once(std::uint64_t ticket, control_outcome outcome, std::string message) {
  answers_.push_back({ticket, {outcome, {}, std::move(message)}});
}

}  // namespace sluice::inline v0
