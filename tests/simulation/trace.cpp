// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace sluice::simulation {

const std::vector<setup_field>& setup_fields() {
  static const std::vector<setup_field> fields{
      {"blocks_per_chunk", &setup::blocks_per_chunk},
      {"num_device_blocks", &setup::num_device_blocks},
      {"num_host_slots", &setup::num_host_slots},
      {"group_layout", &setup::group_layout},
      {"max_num_seqs", &setup::max_num_seqs},
      {"max_num_batched_tokens", &setup::max_num_batched_tokens},
      {"is_async", &setup::is_async},
      {"holds_compute", &setup::holds_compute},
      {"preemption_offload", &setup::preemption_offload},
      {"is_priority", &setup::is_priority},
      {"offloads_preempted_only", &setup::offloads_preempted_only},
      {"offload_prompt_only", &setup::offload_prompt_only},
      {"stores_whole_requests", &setup::stores_whole_requests},
      {"store_threshold", &setup::store_threshold},
      {"recompute_budget", &setup::recompute_budget},
      {"is_arc", &setup::is_arc},
      {"match_chunk_beginnings", &setup::match_chunk_beginnings},
      {"enable_prefix_caching", &setup::enable_prefix_caching},
      {"retention_interval", &setup::retention_interval},
      {"lookup_timeout_s", &setup::lookup_timeout_s},
      {"transfer_timeout_s", &setup::transfer_timeout_s},
      {"end_one_in", &setup::end_one_in}};
  return fields;
}

std::string print(const event& event) {
  std::string text(event_names[static_cast<std::size_t>(event.kind)]);
  auto end = event.numbers.size();
  while (end > 0 && event.numbers[end - 1] == 0) --end;
  for (std::size_t i = 0; i < end; ++i) text += " " + std::to_string(event.numbers[i]);
  return text;
}

std::string print(const trace& trace) {
  std::string text = "engine";
  for (const auto& field : setup_fields())
    text += " " + std::string(field.name) + "=" + std::to_string(trace.engine.*field.member);
  text += "\n";
  for (const auto& event : trace.events) text += print(event) + "\n";
  return text;
}

namespace {

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string parse_setup(std::istringstream& words, setup& engine) {
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const auto& fields = setup_fields();
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const auto& known) { return known.name == name; });
    const auto value = equals == std::string::npos ? std::nullopt : number_of(std::string_view(word).substr(equals + 1));
    if (field == fields.end() || !value) return "\"" + word + "\" is no NAME=NUMBER of an engine";
    engine.*field->member = *value;
  }
  return {};
}

std::string parse_event(const std::string& name, std::istringstream& words, event& event) {
  const auto found = std::find(event_names.begin(), event_names.end(), name);
  if (found == event_names.end()) return "\"" + name + "\" is no event";
  event.kind = static_cast<event_kind>(found - event_names.begin());
  std::size_t count = 0;
  for (std::string word; words >> word; ++count) {
    const auto value = number_of(word);
    if (!value) return "\"" + word + "\" is no number from 0 to 4294967295";
    if (count == event.numbers.size()) return "more than " + std::to_string(event.numbers.size()) + " numbers";
    event.numbers[count] = *value;
  }
  return {};
}

}  // namespace

std::optional<trace> parse(std::string_view text, std::string& fault) {
  trace parsed;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first.starts_with('#')) continue;
    event next;
    fault = first == "engine" ? parse_setup(words, parsed.engine) : parse_event(first, words, next);
    if (!fault.empty()) {
      fault = "line " + std::to_string(number) + ": " + fault;
      return std::nullopt;
    }
    if (first != "engine") parsed.events.push_back(next);
  }
  fault.clear();
  return parsed;
}

std::string print_as_test(const trace& trace, std::string_view name) {
  return "TEST(simulation, " + std::string(name) + ") {\n  expect_no_violation(R\"(\n" + print(trace) + ")\");\n}\n";
}

}  // namespace sluice::simulation
