// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/chunk_sightings.hpp>

#include <list>

#include "host_tier_fixture.hpp"
#include "test_seed.hpp"

namespace sluice {
namespace {

using unit::chunk;
using unit::numbers;

struct sightings {
  void look_up(const numbers& keys) {
    for (const auto key : keys) tracker.sight(chunk(key));
  }
  numbers reaching(const numbers& offered, std::uint32_t threshold) const {
    numbers found;
    for (const auto key : offered)
      if (tracker.reaches(chunk(key), threshold)) found.push_back(key);
    return found;
  }

  chunk_sightings tracker{3};
};

// Guards: scenario O034, only content that was asked for twice is stored; with three entries the least recent goes.
TEST(chunk_sightings, o034_only_content_asked_for_twice) {
  sightings seen;
  seen.look_up({1, 2});
  EXPECT_EQ(seen.reaching({1, 2}, 2), numbers{});
  seen.look_up({1});
  EXPECT_EQ(seen.reaching({1, 2}, 2), numbers{1});
  seen.look_up({3, 4});
  EXPECT_EQ(seen.tracker.count(chunk(2)), 0U);
  EXPECT_EQ(seen.tracker.count(chunk(1)), 2U);
  EXPECT_EQ(seen.tracker.num_keys(), 3U);
  seen.look_up({2});
  EXPECT_EQ(seen.tracker.count(chunk(2)), 1U);
  EXPECT_EQ(seen.reaching({2}, 2), numbers{});
}

// Guards: without a threshold nothing has to be sighted.
TEST(chunk_sightings, a_threshold_of_one_asks_for_nothing) {
  const sightings seen;
  EXPECT_EQ(seen.reaching({1}, 0), numbers{1});
  EXPECT_EQ(seen.reaching({1}, 1), numbers{1});
  EXPECT_EQ(seen.reaching({1}, 2), numbers{});
}

// Guards: asking for a count keeps no key alive; groups are told apart; nothing is left after a clear.
TEST(chunk_sightings, only_sightings_count) {
  sightings seen;
  seen.look_up({1, 2, 3});
  EXPECT_TRUE(seen.tracker.reaches(chunk(1), 1));
  auto other = chunk(1);
  other.group = {1};
  EXPECT_EQ(seen.tracker.count(other), 0U);
  seen.look_up({4});
  EXPECT_EQ(seen.tracker.count(chunk(1)), 0U);
  EXPECT_EQ(seen.tracker.count(chunk(2)), 1U);
  seen.tracker.clear();
  EXPECT_EQ(seen.tracker.num_keys(), 0U);
  EXPECT_EQ(seen.tracker.count(chunk(2)), 0U);
}

// Guards: counts and the choice of who is forgotten, after any sequence of sightings.
TEST(chunk_sightings, follow_a_plain_model) {
  unit::for_each_seed([](std::mt19937_64& generator) {
    chunk_sightings tracker(5);
    std::list<std::pair<std::uint32_t, std::uint32_t>> model;  // key and count, oldest first
    for (int i = 0; i < 2000; ++i) {
      const auto key = unit::below(generator, 9);
      tracker.sight(chunk(key));
      const auto found =
          std::find_if(model.begin(), model.end(), [&](const auto& entry) { return entry.first == key; });
      const auto count = found == model.end() ? 1 : found->second + 1;
      if (found != model.end()) model.erase(found);
      model.emplace_back(key, count);
      if (model.size() > 5) model.pop_front();
      numbers expected(9, 0), counted;
      for (const auto& entry : model) expected[entry.first] = entry.second;
      for (std::uint32_t k = 0; k < 9; ++k) counted.push_back(tracker.count(chunk(k)));
      ASSERT_EQ(counted, expected) << "sighting " << i;
    }
  });
}

}  // namespace
}  // namespace sluice
