// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/plan_blocks.hpp>

#include <algorithm>

namespace sluice::inline v0 {

void plan_blocks::release(const request_record& request) {
  for (const auto& group : request.groups)
    for (auto at = group.table.size(); at > group.num_passed; --at) overlay_.release(group.table[at - 1]);
}

std::uint32_t plan_blocks::num_missing(const request_record& request, std::uint32_t num_tokens) const {
  std::uint32_t num_missing = 0;
  for (std::size_t g = 0; g < request.groups.size(); ++g) {
    const auto num_there = static_cast<std::uint32_t>(request.groups[g].table.size());
    const auto num_needed = state_.config.num_blocks_for(g, num_tokens);
    if (num_needed > num_there) num_missing += num_needed - num_there;
  }
  return num_missing;
}

std::uint32_t plan_blocks::num_tokens_that_fit(const request_record& request, std::uint32_t first,
                                               std::uint32_t num_tokens) const {
  std::uint32_t fits = 0, too_many = num_tokens + 1;  // the answer lies in [fits, too_many)
  while (too_many - fits > 1) {
    const auto middle = too_many == num_tokens + 1 ? num_tokens : fits + (too_many - fits) / 2;
    (num_missing(request, first + middle) <= num_allocatable() ? fits : too_many) = middle;
  }
  return fits;
}

bool plan_blocks::cannot_ever_fit(const request_record& request) const {
  const auto num_quarantined = state_.pool.counts().quarantined;
  return num_quarantined > 0 &&
         state_.config.num_blocks_at_most(request.num_tokens()) + num_quarantined > state_.pool.num_usable();
}

void plan_blocks::sum_outstanding(const std::vector<planned_entry>& entries) {
  num_outstanding_ = 0;
  const auto in_flight = state_.config.num_tokens_in_flight();
  for (const auto* request : state_.requests.active())
    for (std::size_t g = 0; g < request->groups.size(); ++g) {
      const auto& group = request->groups[g];
      const auto shape = state_.config.shape(g);
      const auto num_there = static_cast<std::uint32_t>(group.table.size());
      const auto num_all = shape.num_blocks_for(request->num_planned_tokens());
      if (num_all <= num_there) continue;
      const auto at_most = shape.num_blocks_at_most(request->num_planned_tokens(), in_flight);
      const auto num_held = group.num_held();
      num_outstanding_ += std::min(num_all - num_there, at_most > num_held ? at_most - num_held : 0);
    }
  for (const auto& entry : entries)
    for (const auto& blocks : entry.new_blocks) got(blocks.size());
}

std::uint64_t plan_blocks::num_needed(const request_record& request, const prefix_match& match) const {
  const auto in_flight = state_.config.num_tokens_in_flight();
  std::uint64_t sum = 0;
  for (std::size_t g = 0; g < match.groups.size(); ++g) {
    const auto& group = match.groups[g];
    const auto shape = state_.config.shape(g);
    const auto num_all = shape.num_blocks_for(request.num_tokens()) - group.num_passed;
    const auto num_shared = static_cast<std::uint32_t>(group.shared.size());
    const auto at_most = std::max(std::min(num_all, shape.num_blocks_at_most(request.num_tokens(), in_flight)),
                                  num_shared + group.num_loaded);
    sum += at_most - num_shared;
  }
  return sum;
}

bool plan_blocks::fits(const request_record& request, const prefix_match& match) const {
  auto num_blocks = num_needed(request, match) + num_outstanding_;
  for (const auto& group : match.groups)
    for (auto block : group.shared) num_blocks += overlay_.is_allocatable(block);
  return num_blocks <= num_allocatable();
}

void plan_blocks::expect(const request_record& request, const prefix_match& match) {
  num_outstanding_ += num_needed(request, match);
  for (const auto& group : match.groups) got(group.num_loaded);
}

}  // namespace sluice::inline v0
