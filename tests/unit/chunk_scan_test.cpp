// SPDX-License-Identifier: Apache-2.0
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/scheduler/chunk_scan.hpp>

namespace sluice {
namespace {

using enum lookup_verdict;
using kind = scan_outcome::kind;
using verdicts = std::vector<lookup_verdict>;

scan_outcome known(std::uint32_t end) { return {kind::known, end, 0}; }
scan_outcome awaits_store(std::uint32_t chunk) { return {kind::awaits_store, 0, chunk}; }
scan_outcome awaits_lookup(std::uint32_t chunk) { return {kind::awaits_lookup, 0, chunk}; }

/// Verdicts of chunks 0 on, and which of them a scan asked for.
struct scripted_chunks {
  chunk_lookup lookup() {
    return [this](std::uint32_t chunk) {
      asked.push_back(chunk);
      return given.at(chunk);
    };
  }
  scan_outcome prefix(std::uint32_t budget = 0) {
    return scan_prefix(0, static_cast<std::uint32_t>(given.size()), budget, lookup());
  }
  scan_outcome window(std::uint32_t needed, std::uint32_t needed_at_end) {
    return scan_window(static_cast<std::uint32_t>(given.size()), needed, needed_at_end, lookup());
  }

  verdicts given;
  std::vector<std::uint32_t> asked;
};

scan_outcome prefix_of(verdicts given, std::uint32_t budget = 0) {
  return scripted_chunks{std::move(given), {}}.prefix(budget);
}
scan_outcome window_of(verdicts given, std::uint32_t needed) {
  return scripted_chunks{std::move(given), {}}.window(needed, needed);
}

// Guards: scenario O003, a hit behind a miss is worthless and is not even asked for.
TEST(scan_prefix, o003_stops_at_the_first_miss) {
  scripted_chunks chunks{{miss, hit}, {}};
  EXPECT_EQ(chunks.prefix(), known(0));
  EXPECT_EQ(chunks.asked, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(prefix_of({miss, miss}), known(0));
}

// Guards: scenario O005, a pending head within the budget is a plain miss.
TEST(scan_prefix, o005_recomputes_a_pending_head_within_the_budget) {
  EXPECT_EQ(prefix_of({pending}, 1), known(0));
  EXPECT_EQ(prefix_of({pending}, 0), awaits_store(0));
}

// Guards: scenario O007, what is not known yet postpones the request, and the chunks behind it are asked for as well.
TEST(scan_prefix, o007_goes_on_behind_what_is_not_known_yet) {
  const std::vector<std::pair<verdicts, scan_outcome>> cases{
      {{retry, hit}, awaits_lookup(0)}, {{hit, retry}, awaits_lookup(1)}, {{pending, hit}, awaits_store(0)}};
  for (const auto& [given, expected] : cases) {
    scripted_chunks chunks{given, {}};
    EXPECT_EQ(chunks.prefix(), expected);
    EXPECT_EQ(chunks.asked, (std::vector<std::uint32_t>{0, 1}));
  }
}

// Guards: scenario O010, the budget is held against the run from the first pending chunk to its end.
TEST(scan_prefix, o010_cuts_before_the_first_pending_chunk) {
  EXPECT_EQ(prefix_of({hit, pending, hit, pending}, 3), known(1));
  EXPECT_EQ(prefix_of({hit, pending, hit, pending}, 2), awaits_store(3));
  EXPECT_EQ(prefix_of({hit, pending, hit, miss, pending}, 2), known(1));
}

// Guards: scenario O011, no budget makes up for an answer that is still to come.
TEST(scan_prefix, o011_never_cuts_at_a_retry) {
  EXPECT_EQ(prefix_of({hit, retry}, 10), awaits_lookup(1));
  EXPECT_EQ(prefix_of({hit, pending, retry, retry}, 10), awaits_lookup(2));
}

// Guards: a scan behind a device hit asks for chunks from there on; an empty one asks for none.
TEST(scan_prefix, begins_where_the_device_hit_ends) {
  scripted_chunks chunks{{miss, hit, hit, miss}, {}};
  EXPECT_EQ(scan_prefix(1, 4, 0, chunks.lookup()), known(3));
  EXPECT_EQ(chunks.asked, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(scan_prefix(4, 4, 0, chunks.lookup()), known(4));
  EXPECT_EQ(chunks.asked.size(), 3U);
}

// Guards: scenario O012, every chunk asked for exists, and at least one is asked for.
TEST(scan_window, o012_asks_only_for_chunks_that_exist) {
  for (std::uint32_t num_chunks : {4, 5, 8, 9, 13, 64, 65, 69})
    for (std::uint32_t needed : {1, 2, 3}) {
      scripted_chunks chunks{verdicts(num_chunks, pending), {}};  // at() throws for any other
      EXPECT_EQ(chunks.window(needed, needed), awaits_store(num_chunks - 1));
      EXPECT_EQ(chunks.asked.size(), needed);
    }
}

// Guards: scenario O013, the answer is the end of the rightmost run that fills the window.
TEST(scan_window, o013_answers_the_end_of_the_rightmost_full_window) {
  EXPECT_EQ(window_of({hit, hit}, 2), known(2));
  EXPECT_EQ(window_of({miss, hit, hit}, 2), known(3));
  EXPECT_EQ(window_of({miss, hit, hit, miss}, 2), known(3));
  EXPECT_EQ(window_of({miss, hit, hit}, 1), known(3));
}

// Guards: scenario O014, a window that ends inside the last chunk may need one chunk more than any other.
TEST(scan_window, o014_the_rightmost_window_may_need_one_more) {
  auto with_third = [](lookup_verdict third) { return scripted_chunks{{hit, hit, third, hit, hit}, {}}.window(2, 3); };
  EXPECT_EQ(with_third(miss), known(2));
  EXPECT_EQ(with_third(retry), awaits_lookup(2));
  EXPECT_EQ(with_third(pending), awaits_store(2));
  EXPECT_EQ(with_third(hit), known(5));
}

// Guards: scenario O015, a window that is full ends the scan, also a pending one; misses and retries do not.
TEST(scan_window, o015_number_of_lookups_by_verdict) {
  const std::vector<std::tuple<lookup_verdict, std::size_t, scan_outcome>> cases{
      {hit, 1, known(3)}, {pending, 1, awaits_store(2)}, {retry, 3, awaits_lookup(2)}, {miss, 3, known(0)}};
  for (const auto& [verdict, num_asked, expected] : cases) {
    scripted_chunks chunks{verdicts(3, verdict), {}};
    EXPECT_EQ(chunks.window(1, 1), expected);
    EXPECT_EQ(chunks.asked.size(), num_asked);
  }
}

// Guards: scenario O016, an answer that is still to come postpones although a full window exists further left.
TEST(scan_window, o016_a_retry_always_postpones) {
  EXPECT_EQ(window_of({hit, retry}, 2), awaits_lookup(1));
  scripted_chunks chunks{{hit, hit, retry, hit}, {}};
  EXPECT_EQ(chunks.window(2, 2), awaits_lookup(2));
  EXPECT_EQ(chunks.asked, (std::vector<std::uint32_t>{3, 2, 1, 0}));
}

// Guards: scenario O017, a pending chunk keeps the run alive but is waited for.
TEST(scan_window, o017_a_pending_chunk_keeps_the_run_alive) {
  EXPECT_EQ(window_of({hit, pending}, 2), awaits_store(1));
  EXPECT_EQ(window_of({hit, pending, hit}, 3), awaits_store(1));
}

// Guards: scenario O019, a pending suffix that fills no window must not delay a prefix that does.
TEST(scan_window, o019_an_unusable_pending_suffix_is_not_waited_for) {
  EXPECT_EQ(window_of({hit, hit, miss, pending}, 2), known(2));
}

// Guards: a window that begins before the sequence needs no more chunks than there are.
TEST(scan_window, a_run_that_reaches_the_beginning_suffices) {
  EXPECT_EQ(window_of({hit}, 3), known(1));
  EXPECT_EQ(window_of({hit, miss, hit}, 2), known(1));
  EXPECT_EQ(window_of({pending, miss}, 2), awaits_store(0));
  EXPECT_EQ(window_of({}, 2), known(0));
}

// Guards: a window of one token needs no chunk, so everything is served and nothing is asked for.
TEST(scan_window, a_window_of_one_token_needs_nothing) {
  scripted_chunks chunks{{miss, miss}, {}};
  EXPECT_EQ(chunks.window(window_chunks(1, 4), window_chunks_before(7, 1, 4)), known(2));
  EXPECT_TRUE(chunks.asked.empty());
}

// Guards: scenario O020, a window in chunks is rounded up.
TEST(window_chunks, o020_rounds_up) {
  EXPECT_EQ(window_chunks(8192, 1024), 8U);
  EXPECT_EQ(window_chunks(8192, 3000), 3U);
  EXPECT_EQ(window_chunks(8, 4), 2U);
  EXPECT_EQ(window_chunks(9, 4), 2U);
  EXPECT_EQ(window_chunks(10, 4), 3U);
  EXPECT_EQ(window_chunks(2, 4), 1U);
  EXPECT_EQ(window_chunks(1, 4), 0U);
}

// Guards: inside a chunk a window needs as many chunks as at a boundary or one more, and never tokens before the first.
TEST(window_chunks, before_any_position) {
  EXPECT_EQ(window_chunks_before(20, 9, 4), 2U);
  EXPECT_EQ(window_chunks_before(18, 9, 4), 3U);
  EXPECT_EQ(window_chunks_before(3, 9, 4), 1U);
  EXPECT_EQ(window_chunks_before(0, 9, 4), 0U);
  for (std::uint32_t window = 1; window < 20; ++window)
    for (std::uint32_t end = window; end < 60; ++end) {
      const auto at_boundary = window_chunks(window, 4);
      const auto needed = window_chunks_before(end, window, 4);
      EXPECT_TRUE(needed == at_boundary || (needed == at_boundary + 1 && end % 4 != 0)) << window << " " << end;
    }
}

}  // namespace
}  // namespace sluice
