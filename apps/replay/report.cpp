// SPDX-License-Identifier: Apache-2.0
#include "replay/report.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>
#include <utility>

namespace sluice::replay {

namespace {

constexpr std::size_t num_columns = 8;
using table_line = std::array<std::string, num_columns>;

table_line to_line(const trial_row& row) {
  std::ostringstream loaded;
  loaded << std::fixed << std::setprecision(2) << static_cast<double>(row.num_loaded_bytes) / (1024.0 * 1024.0);
  return {row.scenario,
          row.scheduling,
          std::to_string(row.number),
          row.kind,
          std::to_string(row.num_attempts),
          std::to_string(row.num_tokens),
          loaded.str(),
          row.outcome};
}

void print_table(std::ostream& out, const std::vector<table_line>& lines) {
  std::array<std::size_t, num_columns> widths{};
  for (const table_line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  for (const table_line& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      out << std::left << std::setw(static_cast<int>(widths[i])) << line[i] << "  ";
    out << line.back() << '\n';
  }
}

}  // namespace

std::string report::full_name(std::string_view scenario) const {
  std::string name(scenario);
  return scheduling_.empty() ? name : name + " (" + scheduling_ + ")";
}

void report::progress(std::string_view scenario, std::string_view text) {
  out_ << full_name(scenario) << ": " << text << std::endl;
}

void report::add(trial_row row) {
  progress(row.scenario, "trial " + std::to_string(row.number) + " (" + row.kind + "): " + row.outcome);
  row.scheduling = scheduling_;
  rows_.push_back(std::move(row));
}

void report::pass(std::string_view scenario) {
  const auto num_trials = std::ranges::count_if(
      rows_, [&](const trial_row& row) { return row.scenario == scenario && row.scheduling == scheduling_; });
  out_ << full_name(scenario) << ": PASSED: " << num_trials << " trials, every token equal to its reference"
       << std::endl;
}

void report::fail(std::string_view scenario, std::string_view reason) {
  failures_.push_back(full_name(scenario) + ": " + std::string(reason));
  out_ << full_name(scenario) << ": FAILED: " << reason << std::endl;
}

void report::print_summary() {
  std::vector<table_line> lines{
      {"scenario", "scheduling", "trial", "kind", "attempts", "tokens", "loaded MiB", "outcome"}};
  std::ranges::transform(rows_, std::back_inserter(lines), to_line);
  out_ << '\n';
  print_table(out_, lines);
  out_ << '\n';
  if (failures_.empty()) out_ << "passed: " << rows_.size() << " trials, every token equal to its reference\n";
  for (const std::string& failure : failures_) out_ << "FAILED: " << failure << '\n';
  out_.flush();
}

}  // namespace sluice::replay
