// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "replay/sse_reader.hpp"

namespace sluice::replay {
namespace {

using events = std::vector<std::string>;

TEST(replay_sse_reader, gives_the_data_of_complete_events_only) {
  sse_reader reader;
  EXPECT_EQ(reader.feed("data: one\n\ndata: two\n"), events{"one"});
  EXPECT_EQ(reader.feed("\n"), events{"two"});
  EXPECT_EQ(reader.feed(""), events{});
}

TEST(replay_sse_reader, does_not_depend_on_how_the_bytes_arrive) {
  const std::string_view stream =
      "data: {\"a\": 1}\r\n\r\n: comment\n\nevent: x\nid: 7\ndata:two\ndata:  lines\n\ndata: [DONE]\n\n";
  sse_reader at_once;
  const events expected{"{\"a\": 1}", "two\n lines", "[DONE]"};
  EXPECT_EQ(at_once.feed(stream), expected);

  sse_reader byte_by_byte;
  events got;
  for (const char byte : stream)
    for (std::string& event : byte_by_byte.feed({&byte, 1})) got.push_back(std::move(event));
  EXPECT_EQ(got, expected);
}

TEST(replay_sse_reader, keeps_an_empty_data_line_apart_from_no_data) {
  sse_reader reader;
  EXPECT_EQ(reader.feed("\n\ndata:\n\n\n"), events{""});
}

}  // namespace
}  // namespace sluice::replay
