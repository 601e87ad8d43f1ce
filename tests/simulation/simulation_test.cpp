// SPDX-License-Identifier: Apache-2.0
//
// Simulated days: a fixed set of seeds, fresh ones that are printed, and days on which something was found once.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apart.hpp"
#include "generator.hpp"
#include "shrink.hpp"

namespace sluice::simulation {
namespace {

constexpr std::size_t num_events = 1500;
constexpr std::chrono::seconds limit{120};

/// Runs the seeds, two at once. Adds what was seen to `seen`.
void expect_no_violation(std::uint64_t first_seed, std::uint64_t num_seeds, coverage& seen) {
  auto seed = first_seed;
  run_apart(
      [&]() -> std::optional<numbered_trace> {
        if (seed == first_seed + num_seeds) return std::nullopt;
        const auto number = seed++;
        return numbered_trace{number, generator(number).draw(num_events)};
      },
      [&](const numbered_trace& ran, const outcome& outcome) {
        for (const auto& [name, count] : outcome.seen) seen[name] += count;
        for (const auto& what : outcome.violations)
          ADD_FAILURE() << "seed " << ran.number << ": " << what << "\nagain: sluice-simulate --seed " << ran.number
                        << " --seeds 1 --shrink";
        return outcome.violations.empty();
      },
      {2, limit});
}

/// A trace that failed once, as `sluice-simulate --shrink` prints it.
void expect_no_violation(std::string_view text) {
  std::string fault;
  const auto trace = parse(text, fault);
  ASSERT_TRUE(trace.has_value()) << fault;
  for (const auto& what : run_apart(*trace, limit).violations) ADD_FAILURE() << what;
}

// Guards: all invariants of DESIGN section 13, in both schedulings, every policy, chunk factor and group layout, under
// every fault and command that can be drawn; and that all of these are drawn.
TEST(simulation, fixed_seeds) {
  coverage seen;
  expect_no_violation(0, 120, seen);
  for (const auto& name : known_coverage()) EXPECT_GT(seen[name], 0U) << name << " never happened";
}

// Guards: the same where nobody has looked before. SLUICE_SIMULATION_SEED=n begins with seed n instead.
TEST(simulation, fresh_seeds) {
  const char* asked = std::getenv("SLUICE_SIMULATION_SEED");
  const std::uint64_t first = asked != nullptr ? std::strtoull(asked, nullptr, 10) : std::random_device{}();
  std::cout << "seeds " << first << " to " << first + 9 << '\n';
  coverage seen;
  expect_no_violation(first, 10, seen);
}

// Guards: a run is a function of its trace.
TEST(simulation, a_trace_gives_the_same_run_again) {
  const auto trace = generator(3).draw(400);
  EXPECT_EQ(trace, generator(3).draw(400));
  const auto first = run_apart(trace, limit), second = run_apart(trace, limit);
  EXPECT_EQ(first.num_steps, second.num_steps);
  EXPECT_EQ(first.seen, second.seen);
  EXPECT_GT(first.num_steps, 0U);
}

// Guards: what is printed can be read again, and what cannot be read is named.
TEST(simulation, traces_are_text) {
  const auto trace = generator(5).draw(300);
  std::string fault;
  EXPECT_EQ(parse(print(trace), fault), trace);
  EXPECT_EQ(fault, "");
  const std::pair<const char*, const char*> bad[] = {
      {"sbumit 1", "line 1: \"sbumit\" is no event"},
      {"engine is_async=1\n\nsubmit 1 x", "line 3: \"x\" is no number from 0 to 4294967295"},
      {"# a comment\nturns 1 2 3 4 5 6 7", "line 2: more than 6 numbers"},
      {"engine is_asink=1", "line 1: \"is_asink=1\" is no NAME=NUMBER of an engine"},
      {"engine is_async=-1", "line 1: \"is_async=-1\" is no NAME=NUMBER of an engine"},
      {"advance 4294967296", "line 1: \"4294967296\" is no number from 0 to 4294967295"}};
  for (const auto& [text, expected] : bad) {
    EXPECT_FALSE(parse(text, fault).has_value()) << text;
    EXPECT_EQ(fault, expected);
  }
}

// Guards: a printed test can be pasted here.
TEST(simulation, a_printed_test_runs) {
  const auto body = print_as_test({{}, {{event_kind::submit, {9, 0, 0, 3}}, {event_kind::settle, {}}}}, "seed_1");
  EXPECT_TRUE(body.starts_with("TEST(simulation, seed_1) {\n  expect_no_violation(R\"(\n")) << body;
  expect_no_violation(R"(
engine is_async=1
submit 9 0 0 3
settle
)");
}

// Guards: shrinking keeps what is needed and nothing else.
TEST(simulation, a_trace_shrinks_to_what_fails) {
  auto trace = generator(8).draw(200);
  trace.events[50] = {event_kind::kill_loads, {}};
  trace.events[150] = {event_kind::wait, {40, 7}};
  const auto fails = [](const simulation::trace& candidate) {
    bool is_killed = false;
    for (const auto& event : candidate.events) {
      is_killed = is_killed || event.kind == event_kind::kill_loads;
      if (is_killed && event.kind == event_kind::wait && event.numbers[0] >= 20) return true;
    }
    return false;
  };
  ASSERT_TRUE(fails(trace));
  const auto shortest = shrink(trace, fails);
  EXPECT_EQ(shortest.engine, setup{});
  EXPECT_EQ(shortest.events, (std::vector<event>{{event_kind::kill_loads, {}}, {event_kind::wait, {20}}}));
}

}  // namespace
}  // namespace sluice::simulation
