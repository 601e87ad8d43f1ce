// SPDX-License-Identifier: Apache-2.0
#include "replay/metrics_page.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "replay/errors.hpp"

namespace sluice::replay {

namespace {

/// Takes a quoted label value off the front of `rest`; false when it does not end.
bool take_quoted(std::string_view& rest, std::string& value) {
  if (!rest.starts_with('"')) return false;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return true;
    }
    if (rest[i] == '\\' && ++i < rest.size()) {
      value += rest[i] == 'n' ? '\n' : rest[i];
    } else {
      value += rest[i];
    }
  }
  return false;
}

/// Takes `{name="value",...}` off the front of `rest`; false when it is malformed.
bool take_labels(std::string_view& rest, metrics_page::label_set& labels) {
  if (!rest.starts_with('{')) return true;
  rest.remove_prefix(1);
  while (!rest.starts_with('}')) {
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos) return false;
    std::string name(rest.substr(0, equals)), value;
    rest.remove_prefix(equals + 1);
    if (!take_quoted(rest, value)) return false;
    labels.insert_or_assign(std::move(name), std::move(value));
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
  rest.remove_prefix(1);
  return true;
}

bool has_labels(const metrics_page::label_set& all, const metrics_page::label_set& wanted) {
  return std::ranges::all_of(wanted, [&](const auto& label) {
    const auto found = all.find(label.first);
    return found != all.end() && found->second == label.second;
  });
}

}  // namespace

metrics_page metrics_page::parse(std::string_view text) {
  metrics_page page;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with('#')) page.series_.push_back(parse_sample(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return page;
}

metrics_page::series metrics_page::parse_sample(std::string_view line) {
  series result;
  std::string_view rest = line;
  const std::size_t name_end = rest.find_first_of("{ \t");
  bool is_good = name_end != std::string_view::npos && name_end > 0;
  if (is_good) {
    result.name = rest.substr(0, name_end);
    rest.remove_prefix(name_end);
    is_good = take_labels(rest, result.labels);
  }
  const std::string number(rest);
  char* number_end = nullptr;
  result.value = std::strtod(number.c_str(), &number_end);
  if (!is_good || number_end == number.c_str()) throw replay_error("not a metric: " + std::string(line));
  return result;
}

double metrics_page::sum(std::string_view name, const label_set& labels) const {
  double total = 0;
  bool is_found = false;
  for (const series& one : series_) {
    if (one.name != name || !has_labels(one.labels, labels)) continue;
    total += one.value;
    is_found = true;
  }
  if (is_found) return total;
  std::string wanted(name);
  for (const auto& [label, value] : labels) wanted.append(" ").append(label).append("=").append(value);
  throw replay_error("the server's /metrics has no " + wanted);
}

}  // namespace sluice::replay
