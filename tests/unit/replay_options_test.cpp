// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>
#include <sstream>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "replay/errors.hpp"
#include "replay/options.hpp"
#include "replay/report.hpp"

namespace sluice::replay {
namespace {

std::variant<options, exit_now> parse(std::initializer_list<const char*> words) {
  std::vector<const char*> arguments{"sluice-replay"};
  arguments.insert(arguments.end(), words);
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

int exit_code(std::initializer_list<const char*> words) {
  const auto parsed = parse(words);
  return std::holds_alternative<exit_now>(parsed) ? std::get<exit_now>(parsed).code : -1;
}

TEST(replay_options, run_everything_by_default) {
  const auto given = std::get<options>(parse({}));
  ASSERT_EQ(given.scenarios.size(), all_scenarios().size());
  EXPECT_FALSE(given.url.has_value());
  EXPECT_TRUE(given.server_binary.ends_with("/sluice-serve"));
}

TEST(replay_options, run_what_is_named_in_the_order_of_all) {
  const auto given = std::get<options>(parse({"same-step", "strict", "--url", "http://127.0.0.1:8000/"}));
  ASSERT_EQ(given.scenarios.size(), 2U);
  EXPECT_EQ(given.scenarios[0].name, "strict");
  EXPECT_EQ(given.scenarios[1].name, "same-step");
  EXPECT_EQ(given.url->port, "8000");
}

TEST(replay_options, run_in_both_schedulings_by_default) {
  using both = std::vector<scheduling>;
  EXPECT_EQ(std::get<options>(parse({})).schedulings, (both{scheduling::sync, scheduling::async}));
  EXPECT_EQ(std::get<options>(parse({"--scheduling", "both"})).schedulings, (both{scheduling::sync, scheduling::async}));
  EXPECT_EQ(std::get<options>(parse({"--scheduling", "sync"})).schedulings, both{scheduling::sync});
  EXPECT_EQ(std::get<options>(parse({"--scheduling", "async"})).schedulings, both{scheduling::async});
}

TEST(replay_options, refuse_bad_ones_with_code_2) {
  EXPECT_EQ(exit_code({"sideways"}), 2);
  EXPECT_EQ(exit_code({"--request-timeout", "0"}), 2);
  EXPECT_EQ(exit_code({"--url", "https://127.0.0.1"}), 2);
  EXPECT_EQ(exit_code({"--url", "http://127.0.0.1", "--server", "x"}), 2);
  EXPECT_EQ(exit_code({"--unheard-of"}), 2);
  EXPECT_EQ(exit_code({"--scheduling", "late"}), 2);
  EXPECT_EQ(exit_code({"--url", "http://127.0.0.1", "--scheduling", "sync"}), 2);
}

TEST(replay_options, read_urls) {
  EXPECT_EQ(parse_url("http://localhost").port, "80");
  EXPECT_EQ(parse_url("http://[::1]:81").port, "81");
  EXPECT_THROW(parse_url("localhost:80"), replay_error);
  EXPECT_THROW(parse_url("http://a b"), replay_error);
}

// Guards: of a scenario that runs twice each verdict says of which run, and counts its own trials.
TEST(replay_report, tells_schedulings_apart) {
  std::ostringstream out;
  report summary(out);
  for (const char* how : {"sync", "async"}) {
    summary.set_scheduling(how);
    summary.add({.scenario = "plain", .number = 1, .kind = "control", .num_tokens = 64, .outcome = "fine"});
    summary.pass("plain");
  }
  summary.fail("strict", "late");
  EXPECT_NE(out.str().find("plain (sync): PASSED: 1 trials"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("plain (async): PASSED: 1 trials"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("strict (async): FAILED: late"), std::string::npos) << out.str();
}

TEST(replay_report, ends_with_the_verdict) {
  std::ostringstream out;
  report summary(out);
  summary.add({.scenario = "plain", .number = 1, .kind = "control", .num_tokens = 64, .outcome = "fine"});
  EXPECT_FALSE(summary.has_failed());
  summary.fail("strict", "token 3 is 5 instead of 6");
  EXPECT_TRUE(summary.has_failed());
  summary.print_summary();
  EXPECT_TRUE(out.str().ends_with("FAILED: strict: token 3 is 5 instead of 6\n")) << out.str();
}

}  // namespace
}  // namespace sluice::replay
