// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "replay/errors.hpp"
#include "replay/metrics_page.hpp"

namespace sluice::replay {
namespace {

constexpr auto sample =
    "# HELP sluice_offload_bytes_total Bytes moved\n"
    "# TYPE sluice_offload_bytes_total counter\n"
    "sluice_offload_bytes_total{direction=\"load\",tier=\"host\"} 4096\n"
    "sluice_offload_bytes_total{direction=\"store\",tier=\"host\"} 1.5e3 1700000000\n"
    "sluice_steps_total 12\r\n"
    "\n"
    "odd{text=\"a \\\"b\\\", {c}\\n\"} +Inf";

TEST(replay_metrics_page, finds_one_series_by_its_labels) {
  const auto page = metrics_page::parse(sample);
  EXPECT_EQ(page.sum("sluice_offload_bytes_total", {{"direction", "load"}, {"tier", "host"}}), 4096);
  EXPECT_EQ(page.sum("sluice_offload_bytes_total", {{"direction", "store"}}), 1500);
  EXPECT_EQ(page.sum("sluice_steps_total"), 12);
  EXPECT_GT(page.sum("odd", {{"text", "a \"b\", {c}\n"}}), 1e300);
}

TEST(replay_metrics_page, sums_the_series_that_have_the_labels) {
  EXPECT_EQ(metrics_page::parse(sample).sum("sluice_offload_bytes_total", {{"tier", "host"}}), 5596);
}

TEST(replay_metrics_page, does_not_take_a_missing_series_for_zero) {
  const auto page = metrics_page::parse(sample);
  EXPECT_THROW(page.sum("sluice_step_total"), replay_error);
  EXPECT_THROW(page.sum("sluice_offload_bytes_total", {{"direction", "sideways"}}), replay_error);
}

TEST(replay_metrics_page, refuses_what_is_no_metric) {
  EXPECT_THROW(metrics_page::parse("<html>"), replay_error);
  EXPECT_THROW(metrics_page::parse("name{label=\"open} 1"), replay_error);
  EXPECT_THROW(metrics_page::parse("name{label=1} 1"), replay_error);
  EXPECT_THROW(metrics_page::parse("name word"), replay_error);
}

}  // namespace
}  // namespace sluice::replay
