// SPDX-License-Identifier: Apache-2.0
#include "replay/sse_reader.hpp"

#include <utility>

namespace sluice::replay {

std::vector<std::string> sse_reader::feed(std::string_view piece) {
  std::vector<std::string> events;
  partial_line_ += piece;
  std::size_t begin = 0;
  for (std::size_t end = partial_line_.find('\n'); end != std::string::npos; end = partial_line_.find('\n', begin)) {
    std::string_view line(partial_line_.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    take_line(line, events);
    begin = end + 1;
  }
  partial_line_.erase(0, begin);
  return events;
}

void sse_reader::take_line(std::string_view line, std::vector<std::string>& events) {
  if (line.empty()) {
    if (has_data_) events.push_back(std::exchange(data_, {}));
    has_data_ = false;
  } else if (line.starts_with("data:")) {
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += line;
    has_data_ = true;
  }
}

}  // namespace sluice::replay
