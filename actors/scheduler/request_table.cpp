// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/request_table.hpp>

#include <algorithm>
#include <cassert>

namespace sluice::inline v0 {

request_record& request_table::add(request_params params, std::size_t num_groups) {
  const auto id = params.id;
  auto [at, is_new] = requests_.try_emplace(id);
  assert(is_new);
  auto& request = at->second;
  request.arrival = ++last_arrival_;
  request.attempt = {1};
  request.tokens = params.prompt;
  request.tokens.reserve(params.prompt.size() + params.max_tokens);
  request.usage.num_prompt_tokens = static_cast<std::uint32_t>(params.prompt.size());
  request.groups.resize(num_groups);
  request.params = std::move(params);
  enter_queue(request);
  return request;
}

request_record* request_table::find(request_id id) {
  auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : &found->second;
}

const request_record* request_table::find(request_id id) const {
  auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : &found->second;
}

void request_table::apply(request_record& request, request_event event) {
  const auto next = next_phase(request.phase, event);
  assert(next.has_value());
  leave_queue(request);
  if (event == request_event::preempt || event == request_event::lose_load) {
    ++request.attempt.value;
    request.is_timed = request.has_waited_enough = request.is_load_refused = false;
  }
  request.phase = *next;
  request.is_parked = request.needs_budget = false;
  request.available_at_refusal.reset();
  request.reason = *next == request_phase::waiting   ? waiting_reason::queued
                   : *next == request_phase::loading ? waiting_reason::load_in_flight
                                                     : waiting_reason::none;
  enter_queue(request);
}

request_record request_table::remove(request_id id) {
  auto found = requests_.find(id);
  assert(found != requests_.end() && found->second.phase == request_phase::finished);
  auto request = std::move(found->second);
  requests_.erase(found);
  return request;
}

request_table::queue_entry request_table::entry_of(const request_record& request) const {
  const auto priority = order_ == scheduling_policy::priority ? request.params.priority : 0;
  return {priority, request.attempt.value == 1, request.arrival, &request};
}

void request_table::park(request_record& request, waiting_reason reason) {
  assert(request.phase == request_phase::waiting);
  waiting_.erase(entry_of(request));
  request.is_parked = true;
  request.reason = reason;
}

void request_table::wake(request_record& request) {
  if (request.phase != request_phase::waiting || !request.is_parked) return;
  request.is_parked = false;
  request.reason = waiting_reason::queued;
  waiting_.insert(entry_of(request));
}

void request_table::leave_queue(request_record& request) {
  num_loading_ -= request.phase == request_phase::loading;
  switch (request.phase) {
    case request_phase::waiting: waiting_.erase(entry_of(request)); break;
    case request_phase::loading:
    case request_phase::running: std::erase(active_, &request); break;
    case request_phase::finished: break;
  }
}

void request_table::enter_queue(request_record& request) {
  num_loading_ += request.phase == request_phase::loading;
  switch (request.phase) {
    case request_phase::waiting: waiting_.insert(entry_of(request)); break;
    case request_phase::loading:
    case request_phase::running:
      active_.insert(std::upper_bound(active_.begin(), active_.end(), &request,
                                      [this](auto* a, auto* b) { return is_before(*a, *b); }),
                     &request);
      break;
    case request_phase::finished: break;
  }
}

}  // namespace sluice::inline v0
