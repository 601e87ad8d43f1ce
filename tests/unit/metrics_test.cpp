// SPDX-License-Identifier: Apache-2.0
//
// The page that a scrape gets of a running engine.
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <sluice/runtime/metric_families.hpp>

#include <support/live_runtime.hpp>

namespace sluice::testing {
namespace {

/// Value by series, as the page writes it, of the lines that are no comments.
std::map<std::string, std::string> values_of(const std::string& page) {
  std::map<std::string, std::string> values;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    const auto space = line.rfind(' ');
    EXPECT_TRUE(values.emplace(line.substr(0, space), line.substr(space + 1)).second) << "twice: " << line;
  }
  return values;
}

// O090 as far as it applies: families are made of declared names and labels only, so nothing undeclared can be
// exported. Guards: each family has a help text and a type, no two share a name, all series of one have the same labels.
TEST(metrics, o090_families_are_well_formed) {
  std::set<std::string> names;
  for (const auto& family : make_metric_families({})) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_TRUE(family.name.starts_with("sluice_")) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_EQ(family.name.ends_with("_total"), family.type == prometheus::MetricType::Counter) << family.name;
    ASSERT_FALSE(family.metric.empty()) << family.name;
    std::set<std::string> series;
    for (const auto& metric : family.metric) {
      std::string values;
      ASSERT_EQ(metric.label.size(), family.metric[0].label.size()) << family.name;
      for (std::size_t i = 0; i < metric.label.size(); ++i) {
        EXPECT_EQ(metric.label[i].name, family.metric[0].label[i].name) << family.name;
        values += metric.label[i].value + ",";
      }
      EXPECT_TRUE(series.insert(values).second) << family.name << " " << values;
    }
  }
}

// Guards: what one request did is on the page of a running engine, in every histogram that it touched.
TEST(metrics, a_request_is_on_the_page) {
  auto engine = start_live().value();
  submit_to(*engine, greedy_request(std::string(100, 'a'), 30))->wait_for_end();
  wait_until_idle(*engine);
  auto values = values_of(engine->metrics());
  EXPECT_EQ(values["sluice_queue_seconds_count"], "1");
  EXPECT_EQ(values["sluice_request_seconds_count"], "1");
  EXPECT_EQ(values["sluice_tier_lookup_seconds_count{tier=\"host\"}"], "1");
  EXPECT_EQ(values["sluice_step_seconds_count{part=\"commit\"}"], values["sluice_steps_total"]);
  EXPECT_EQ(values["sluice_step_seconds_count{part=\"execute\"}"], values["sluice_steps_total"]);
  EXPECT_EQ(values["sluice_step_seconds_count{part=\"boundary\"}"], "0");
  EXPECT_EQ(values["sluice_transfer_bytes_count{direction=\"store\",tier=\"host\"}"],
            values["sluice_offload_transfers_total{direction=\"store\",tier=\"host\",result=\"ok\"}"]);
  EXPECT_EQ(values["sluice_transfer_bytes_sum{direction=\"store\",tier=\"host\"}"],
            values["sluice_offload_bytes_total{direction=\"store\",tier=\"host\"}"]);
  EXPECT_EQ(values["sluice_transfer_seconds_count{direction=\"load\",tier=\"host\"}"], "0");
  EXPECT_EQ(values["sluice_refused_offers_total{tier=\"host\"}"], "0");
  EXPECT_EQ(values["sluice_actor_restarts_total{actor=\"load\"}"], "0");
  EXPECT_EQ(values["sluice_actor_restarts_total{actor=\"store\"}"], "0");
}

}  // namespace
}  // namespace sluice::testing
