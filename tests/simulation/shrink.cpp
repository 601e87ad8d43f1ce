// SPDX-License-Identifier: Apache-2.0
#include "shrink.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace sluice::simulation {

namespace {

using predicate = std::function<bool(const trace&)>;

/// True if anything could be left out.
bool leave_out_events(trace& trace, const predicate& fails) {
  bool is_shorter = false;
  for (auto size = std::max<std::size_t>(trace.events.size() / 2, 1); size > 0; size /= 2)
    for (std::size_t at = 0; at < trace.events.size();) {
      auto shorter = trace;
      const auto from = shorter.events.begin() + static_cast<std::ptrdiff_t>(at);
      shorter.events.erase(from, from + static_cast<std::ptrdiff_t>(std::min(size, trace.events.size() - at)));
      if (fails(shorter)) {
        trace = std::move(shorter);
        is_shorter = true;
      } else {
        at += size;
      }
    }
  return is_shorter;
}

bool try_number(trace& trace, std::uint32_t& number, std::uint32_t smaller, const predicate& fails) {
  if (smaller >= number) return false;
  const auto before = std::exchange(number, smaller);
  if (fails(trace)) return true;
  number = before;
  return false;
}

bool lower_numbers(trace& trace, const predicate& fails) {
  bool is_lower = false;
  for (auto& event : trace.events)
    for (auto& number : event.numbers)
      for (const auto smaller : {std::uint32_t{0}, std::uint32_t{1}, number / 2, number == 0 ? 0 : number - 1})
        is_lower = try_number(trace, number, smaller, fails) || is_lower;
  return is_lower;
}

void set_up_as_usual(trace& trace, const predicate& fails) {
  const setup usual;
  for (const auto& field : setup_fields()) {
    const auto before = std::exchange(trace.engine.*field.member, usual.*field.member);
    if (trace.engine.*field.member != before && !fails(trace)) trace.engine.*field.member = before;
  }
}

}  // namespace

trace shrink(trace trace, const predicate& fails) {
  while (leave_out_events(trace, fails)) {}
  set_up_as_usual(trace, fails);
  while (lower_numbers(trace, fails) && leave_out_events(trace, fails)) {}
  return trace;
}

}  // namespace sluice::simulation
