// SPDX-License-Identifier: Apache-2.0
//
// A simulated day as plain values: how the engine is set up, and what happens to it. Nothing else goes into a run, so
// a trace that is printed can be run again, shortened, and kept as a test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::simulation {

/// What can happen. The numbers that come with it are read modulo what there is to choose from, so that every event
/// means something in every state and leaving one out makes no other invalid.
enum class event_kind : std::uint8_t {
  submit,         ///< prompt length, prompt family, tokens behind the family's, output length, traits, priority
  abort,          ///< which of the open requests
  reset,          ///< which caches and how, wait in seconds
  pause,          ///< mode, what is cleared, timeout in seconds
  sleep,          ///< level, mode, what is cleared, timeout in seconds
  wake,           ///< which memory
  resume,
  start_copies,   ///< of which transfer, how many
  end_copies,     ///< of which transfer, late copies of others on its stream included
  fail_copies,    ///< of which transfer, how many good ones, how the bad one is left
  refuse_copies,  ///< of the next transfer of which direction
  compute,        ///< how many operations of the compute stream
  turns,          ///< how many, first come first served
  turn_of,        ///< which actor, how many
  starve,         ///< which of the engine's actors gets no turn for a while, how many turns
  advance,        ///< the clock, in milliseconds
  wait,           ///< how many times the clock moves, milliseconds each; in between all goes on but copies
  kill_loads,     ///< the load actor ends
  kill_stores,    ///< the store actor ends
  refuse_compute, ///< the device does not say when the next step has ended
  older_load,     ///< a boundary names a load that was created before its step
  settle          ///< everything goes on until nothing is left to do
};

inline constexpr std::array<std::string_view, 22> event_names{
    "submit",     "abort",       "reset",         "pause",   "sleep", "wake",    "resume", "start_copies",
    "end_copies", "fail_copies", "refuse_copies", "compute", "turns", "turn_of", "starve", "advance",
    "wait",       "kill_loads",  "kill_stores",   "refuse_compute", "older_load", "settle"};

struct event {
  static constexpr std::size_t max_numbers = 6;

  event_kind kind = event_kind::settle;
  std::array<std::uint32_t, max_numbers> numbers{};

  friend bool operator==(const event&, const event&) = default;
};

/// How the engine is set up. Layouts are numbers of a fixed table.
struct setup {
  std::uint32_t blocks_per_chunk = 1, num_device_blocks = 20, num_host_slots = 8, group_layout = 0;
  std::uint32_t max_num_seqs = 4, max_num_batched_tokens = 32;
  std::uint32_t is_async = 1, holds_compute = 0;
  std::uint32_t preemption_offload = 1, is_priority = 0, offloads_preempted_only = 0, offload_prompt_only = 0;
  std::uint32_t stores_whole_requests = 0, store_threshold = 0, recompute_budget = 0, is_arc = 0;
  std::uint32_t match_chunk_beginnings = 1, enable_prefix_caching = 1, retention_interval = 0;
  std::uint32_t lookup_timeout_s = 3, transfer_timeout_s = 60, end_one_in = 0;

  friend bool operator==(const setup&, const setup&) = default;
};

/// Every member of a setup with its name, for printing and reading.
struct setup_field {
  std::string_view name;
  std::uint32_t setup::* member;
};
const std::vector<setup_field>& setup_fields();

struct trace {
  setup engine;
  std::vector<event> events;

  friend bool operator==(const trace&, const trace&) = default;
};

/// One line for the setup, one per event; what is zero at the end of a line is left out.
std::string print(const trace& trace);
std::string print(const event& event);

/// The opposite. Nothing, and a sentence in `fault` that names the line, if the text is no trace.
std::optional<trace> parse(std::string_view text, std::string& fault);

/// A GoogleTest case that runs the trace, to be pasted into simulation_test.cpp.
std::string print_as_test(const trace& trace, std::string_view name);

}  // namespace sluice::simulation
