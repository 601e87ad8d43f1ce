// SPDX-License-Identifier: Apache-2.0
//
// sluice-simulate: simulated days over the real actors, from seeds or from a file.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <sluice/actors/rules.hpp>
#include <sluice/version.hpp>

#include "apart.hpp"
#include "generator.hpp"
#include "shrink.hpp"

namespace sluice::simulation {
namespace {

using clock = std::chrono::steady_clock;

struct options {
  std::uint64_t num_steps = 0, first_seed = 0, num_seeds = 0;
  std::size_t num_events = 1500;
  unsigned num_jobs = 2;
  std::uint32_t limit_s = 120;
  std::string replay, without;
  bool shrinks = false, prints_trace = false;
};

class session {
 public:
  explicit session(options given) : given_(std::move(given)) {}

  int run_seeds() {
    const auto last_seed =
        given_.num_seeds == 0 ? std::numeric_limits<std::uint64_t>::max() : given_.first_seed + given_.num_seeds;
    auto seed = given_.first_seed;
    std::cout << "seeds from " << seed << ", " << given_.num_events << " events each\n" << std::flush;
    run_apart(
        [&]() -> std::optional<numbered_trace> {
          if (seed == last_seed || (given_.num_steps > 0 && num_steps_ >= given_.num_steps)) return std::nullopt;
          const auto number = seed++;
          return numbered_trace{number, generator(number).draw(given_.num_events)};
        },
        [&](const numbered_trace& ran, const outcome& outcome) { return note(ran, outcome); },
        {given_.num_jobs, std::chrono::seconds{given_.limit_s}});
    summarise();
    return is_bad_ ? 1 : 0;
  }

  int run_file() {
    std::ifstream file(given_.replay);
    std::stringstream text;
    if (!(text << file.rdbuf())) {
      std::cerr << "sluice-simulate: --replay: cannot read " << given_.replay << '\n';
      return 2;
    }
    std::string fault;
    const auto trace = parse(text.str(), fault);
    if (!trace) {
      std::cerr << "sluice-simulate: --replay: " << given_.replay << ": " << fault << '\n';
      return 2;
    }
    const auto outcome = run_apart(*trace, std::chrono::seconds{given_.limit_s});
    if (outcome.violations.empty()) {
      std::cout << "no violation in " << outcome.num_events << " events and " << outcome.num_steps << " steps\n";
      return 0;
    }
    report(*trace, outcome, "replayed");
    return 1;
  }

 private:
  bool note(const numbered_trace& ran, const outcome& outcome) {
    ++num_runs_;
    num_steps_ += outcome.num_steps;
    num_events_ += outcome.num_events;
    for (const auto& [name, count] : outcome.seen) seen_[name] += count;
    if (given_.prints_trace) std::cout << print(ran.what);
    if (clock::now() - last_news_ > std::chrono::seconds{10}) {
      last_news_ = clock::now();
      std::cout << num_runs_ << " seeds, " << rate() << '\n' << std::flush;
    }
    if (outcome.violations.empty()) return true;
    is_bad_ = true;
    std::cout << "\nseed " << ran.number << " FAILED; again: sluice-simulate --seed " << ran.number
              << " --seeds 1 --events " << given_.num_events << " --shrink\n";
    report(ran.what, outcome, "seed_" + std::to_string(ran.number));
    return false;
  }

  void report(const trace& failed, const outcome& outcome, const std::string& name) const {
    for (const auto& what : outcome.violations) std::cout << "violation: " << what << '\n';
    if (!given_.shrinks) {
      std::cout << print(failed);
      return;
    }
    auto shorter = failed;
    shorter.events.resize(std::min(shorter.events.size(), outcome.num_events + 1));
    const std::chrono::seconds limit{std::min(given_.limit_s, 20U)};
    std::size_t num_tries = 0;
    const auto fails = [&](const trace& candidate) {
      if (++num_tries % 200 == 0) std::cout << "shrinking: " << candidate.events.size() << " events\n" << std::flush;
      return !run_apart(candidate, limit).violations.empty();
    };
    if (!fails(shorter)) shorter = failed;
    shorter = shrink(shorter, fails);
    std::cout << "the shortest that fails, after " << num_tries << " tries:\n" << print(shorter);
    for (const auto& what : run_apart(shorter, limit).violations) std::cout << "violation: " << what << '\n';
    std::cout << '\n' << print_as_test(shorter, name);
  }

  std::string rate() const {
    const auto seconds = std::chrono::duration<double>(clock::now() - start_).count();
    return std::to_string(num_steps_) + " steps, " + std::to_string(num_events_) + " events, " +
           std::to_string(static_cast<std::uint64_t>(static_cast<double>(num_steps_) / std::max(seconds, 1e-3))) +
           " steps/s";
  }

  void summarise() const {
    std::cout << '\n' << num_runs_ << " seeds, " << rate() << '\n';
    auto names = known_coverage();
    for (const auto& [name, count] : seen_)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    std::string gaps;
    for (const auto& name : names) {
      const auto found = seen_.find(name);
      const auto count = found == seen_.end() ? 0 : found->second;
      std::cout << "  " << name << ": " << count << '\n';
      if (count == 0) gaps += (gaps.empty() ? "" : ", ") + name;
    }
    std::cout << (gaps.empty() ? "everything that is counted has happened" : "never happened: " + gaps) << '\n'
              << (is_bad_ ? "VIOLATIONS FOUND" : "no violation") << '\n';
  }

  const options given_;
  const clock::time_point start_ = clock::now();
  clock::time_point last_news_ = start_;
  std::uint64_t num_runs_ = 0, num_steps_ = 0, num_events_ = 0;
  coverage seen_;
  bool is_bad_ = false;
};

}  // namespace
}  // namespace sluice::simulation

int main(int argc, char** argv) {
  sluice::simulation::options given;
  CLI::App app{"Runs simulated days over the real actors, with faults, in an order of events drawn from seeds."};
  app.name("sluice-simulate");
  app.set_version_flag("--version", std::string("sluice-simulate " SLUICE_VERSION));
  app.option_defaults()->always_capture_default();
  app.add_option("--steps", given.num_steps, "Stop after so many steps of the engine; 0: at the last seed");
  app.add_option("--seed", given.first_seed, "The first seed; each later one is one more");
  app.add_option("--seeds", given.num_seeds, "How many seeds; 0: until --steps (100 without --steps)");
  app.add_option("--events", given.num_events, "Events of a seed")->check(CLI::Range(1, 1'000'000));
  app.add_option("--jobs", given.num_jobs, "Runs at once")->check(CLI::Range(1, 256));
  app.add_option("--limit", given.limit_s, "Seconds that one run may take")->check(CLI::Range(1, 86400));
  app.add_option("--replay", given.replay, "Run the trace in this file, as printed before, instead of seeds");
  app.add_flag("--shrink", given.shrinks, "Look for the shortest trace that fails, and print it as a test, too");
  app.add_flag("--print", given.prints_trace, "Print every trace");
#ifdef SLUICE_RULE_SWITCHES
  app.add_option("--without", given.without, "Take this rule of the design out, to see what misses it")
      ->check(CLI::IsMember(std::set<std::string>(sluice::rule_names.begin(), sluice::rule_names.end())));
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? 0 : 2;
  }
#ifdef SLUICE_RULE_SWITCHES
  if (const auto found = std::find(sluice::rule_names.begin(), sluice::rule_names.end(), given.without);
      found != sluice::rule_names.end())
    sluice::rule_taken_out = static_cast<sluice::rule>(found - sluice::rule_names.begin());
#endif
  if (given.num_steps == 0 && given.num_seeds == 0) given.num_seeds = 100;
  sluice::simulation::session session(given);
  return given.replay.empty() ? session.run_seeds() : session.run_file();
}
