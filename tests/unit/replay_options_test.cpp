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

TEST(replay_options, refuse_bad_ones_with_code_2) {
  EXPECT_EQ(exit_code({"sideways"}), 2);
  EXPECT_EQ(exit_code({"--request-timeout", "0"}), 2);
  EXPECT_EQ(exit_code({"--url", "https://127.0.0.1"}), 2);
  EXPECT_EQ(exit_code({"--url", "http://127.0.0.1", "--server", "x"}), 2);
  EXPECT_EQ(exit_code({"--unheard-of"}), 2);
}

TEST(replay_options, read_urls) {
  EXPECT_EQ(parse_url("http://localhost").port, "80");
  EXPECT_EQ(parse_url("http://[::1]:81").port, "81");
  EXPECT_THROW(parse_url("localhost:80"), replay_error);
  EXPECT_THROW(parse_url("http://a b"), replay_error);
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
