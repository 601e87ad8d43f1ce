// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::replay {

/// What one trial came to. A trial that differs has no row; the error that ends its scenario has the reason.
struct trial_row {
  std::string scenario;
  std::string scheduling{};      ///< set by the report
  std::size_t number = 0;        ///< from 1
  std::string kind;              ///< flagged or control, or what else the trials of a scenario differ in
  std::size_t num_attempts = 1;  ///< with those whose reset missed what it was to meet
  std::uint64_t num_tokens = 0;  ///< compared with the reference
  std::uint64_t num_loaded_bytes = 0;
  std::string outcome{};
};

/// Progress lines while the replays run and a table at the end. Each line is flushed. One thread.
class report {
 public:
  explicit report(std::ostream& out) : out_(out) {}

  /// How the server of everything that follows schedules; shown beside the scenario.
  void set_scheduling(std::string_view name) { scheduling_ = name; }

  void progress(std::string_view scenario, std::string_view text);
  void add(trial_row row);

  /// The verdict on a scenario.
  void pass(std::string_view scenario);
  void fail(std::string_view scenario, std::string_view reason);

  /// The table, then one line with the verdict.
  void print_summary();

  bool has_failed() const { return !failures_.empty(); }

 private:
  std::string full_name(std::string_view scenario) const;

  std::ostream& out_;
  std::string scheduling_;
  std::vector<trial_row> rows_;
  std::vector<std::string> failures_;
};

}  // namespace sluice::replay
