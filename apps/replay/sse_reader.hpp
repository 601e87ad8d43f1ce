// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::replay {

/// Cuts a stream of server-sent events into the data of each event, however the bytes arrive. Lines may end in LF or
/// CR LF; several `data:` lines of one event are joined by a newline; comments and other fields are skipped. An
/// event counts once its empty line has arrived.
class sse_reader {
 public:
  /// The data of the events that `piece` completes, in order.
  std::vector<std::string> feed(std::string_view piece);

 private:
  void take_line(std::string_view line, std::vector<std::string>& events);

  std::string partial_line_;
  std::string data_;
  bool has_data_ = false;
};

}  // namespace sluice::replay
