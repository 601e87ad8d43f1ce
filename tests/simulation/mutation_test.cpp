// SPDX-License-Identifier: Apache-2.0
//
// Rules of the design, taken out one at a time: the simulation must miss each, soon, and say what is wrong.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <sluice/actors/rules.hpp>

#include "apart.hpp"
#include "generator.hpp"

namespace sluice::simulation {
namespace {

struct mutation {
  rule without;
  std::uint64_t max_steps;      ///< within which something is found, from seed 0 on
  std::string_view complaint;   ///< part of what is said then
};

std::string_view name_of(rule rule) { return rule_names[static_cast<std::size_t>(rule)]; }
void PrintTo(const mutation& mutation, std::ostream* out) { *out << name_of(mutation.without); }

constexpr mutation mutations[] = {
    {rule::subtract_step_loads, 5'000, "waits on a load that was created before step"},
    {rule::flush_preempted, 5'000, "content of request"},
    {rule::flush_reused, 5'000, "content of request"},
    {rule::pin_loaded_slots, 5'000, "num_readers == 0"},
    {rule::pending_is_no_hit, 5'000, "is_linked(slot)"},
    {rule::settle_as_stale, 5'000, "is of an old epoch and not stale"},
    {rule::hold_load_targets, 5'000, "references, "},
    {rule::wait_for_joined_loads, 5'000, "content of request"},
    {rule::order_loads_after_steps, 20'000, "unknown content"},
    {rule::match_attempts, 5'000, "num_dispatched_tokens"},
    {rule::unpin_withdrawn, 20'000, "slots are pinned although nothing is in flight"},
    {rule::quarantine_given_up, 5'000, "was given up and touches a block that is not quarantined"},
    {rule::compute_last_token, 5'000, "written while another request"},
    {rule::wait_for_own_stores, 20'000, "while a store of its own is unsettled"},
    {rule::index_good_blocks, 5'000, "content of request"},
    {rule::forget_failed_stores, 5'000, "became readable with a torn block"},
    {rule::admit_no_victim, 50'000, "record.id.value > last_id_"},
    {rule::adopt_transfers, 5'000, "nothing goes on"},
    {rule::wake_waiters, 5'000, "waits for stores that it does not have"},
    {rule::flush_stores_only, 5'000, "older load was answered with none"},
    {rule::stage_again, 100'000, "nothing goes on"},
    {rule::spare_offered_slots, 10'000, "an offer evicted a chunk that it names itself"},
    {rule::offer_current_epoch, 10'000, "content from before a reset of the tier"},
    {rule::keep_chunks_of_windows, 10'000, "part of a chunk among them"},
    {rule::hold_unordered_loads, 50'000, "transfers failed by themselves"},
    {rule::stage_by_step, 500'000, "reference(id)"},
    {rule::report_in_order, 5'000, "was not the oldest in flight"},
};

struct taken_out {
  explicit taken_out(rule rule) { rule_taken_out = rule; }
  ~taken_out() { rule_taken_out = std::nullopt; }
  taken_out(const taken_out&) = delete;
  taken_out& operator=(const taken_out&) = delete;
};

class mutation_test : public ::testing::TestWithParam<mutation> {};

// Guards: that the simulation sees what each rule is for. A rule that nobody misses is superfluous, or the simulation is
// blind.
TEST_P(mutation_test, is_found) {
  const taken_out without(GetParam().without);
  std::uint64_t seed = 0, num_steps = 0;
  std::string found;
  run_apart(
      [&]() -> std::optional<numbered_trace> {
        if (num_steps > GetParam().max_steps) return std::nullopt;
        const auto number = seed++;
        return numbered_trace{number, generator(number).draw(1500)};
      },
      [&](const numbered_trace&, const outcome& outcome) {
        num_steps += outcome.num_steps;
        if (!outcome.violations.empty()) found = outcome.violations.front();
        return outcome.violations.empty();
      },
      {1, std::chrono::seconds{60}});
  ASSERT_NE(found, "") << "nothing in " << num_steps << " steps";
  EXPECT_LE(num_steps, GetParam().max_steps);
  EXPECT_NE(found.find(GetParam().complaint), std::string::npos) << found;
  std::cout << "after " << num_steps << " steps: " << found << '\n';
}

INSTANTIATE_TEST_SUITE_P(rules, mutation_test, ::testing::ValuesIn(mutations),
                         [](const auto& mutation) { return std::string(name_of(mutation.param.without)); });

}  // namespace
}  // namespace sluice::simulation
