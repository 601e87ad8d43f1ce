// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::replay {

/// One scrape in Prometheus text exposition format, as a value.
class metrics_page {
 public:
  using label_set = std::map<std::string, std::string, std::less<>>;

  /// Throws replay_error and names the line that is no sample. Comments and time stamps are skipped.
  static metrics_page parse(std::string_view text);

  /// The sum of all series of `name` that have every label of `labels`. Throws replay_error when there is none, so
  /// that a misspelt or missing metric is not taken for zero.
  double sum(std::string_view name, const label_set& labels = {}) const;

 private:
  struct series {
    std::string name;
    label_set labels;
    double value = 0;
  };
  static series parse_sample(std::string_view line);

  std::vector<series> series_;
};

}  // namespace sluice::replay
