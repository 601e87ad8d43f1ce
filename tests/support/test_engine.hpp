// SPDX-License-Identifier: Apache-2.0
//
// The real actors over the manual device and the checking executor, under a virtual clock: nothing happens before the
// test says so. Compute is inline; copies are held until the test completes them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <sluice/actors/preemption/preemption_handler_actor.hpp>
#include <sluice/actors/request/byte_tokenizer.hpp>
#include <sluice/actors/request/request_sink.hpp>
#include <sluice/actors/scheduler/scheduler_actor.hpp>
#include <sluice/actors/transfer/load_actor.hpp>
#include <sluice/actors/transfer/store_actor.hpp>
#include <sluice/gpu/manual/manual_device.hpp>
#include <sluice/messages/interfaces.hpp>

#include "checking_executor.hpp"
#include "deterministic_system.hpp"
#include "traffic_recorder.hpp"

namespace sluice::testing {

struct engine_options {
  std::uint32_t block_size = 4;
  std::uint32_t blocks_per_chunk = 1;
  std::uint32_t num_device_blocks = 100;
  std::uint32_t num_host_slots = 64;
  std::uint32_t max_num_seqs = 256;
  std::uint32_t max_num_batched_tokens = 2048;
  std::uint32_t max_model_len = 4096;
  bool enable_prefix_caching = true;
  std::unique_ptr<tier_index> tier;  ///< in place of the host tier; needs as many slots
  bool async_scheduling = false;
  checking_executor_options model;   ///< KV groups among others
  /// Last word on what the scheduler is told.
  std::function<void(scheduler_config&)> adjust = [](scheduler_config&) {};
  bool holds_compute = false;        ///< steps run when the test drives the stream "compute"
  bool is_supervised = false;        ///< a load or store actor that ends gets a successor
  engine_observer* observer = nullptr;  ///< of the scheduler's times; outlives the engine
  bool has_fake_handler = false;     ///< the test answers boundaries itself, through `handler_probe`
};

/// The dimensions that most scenarios name.
engine_options sized(std::uint32_t block_size, std::uint32_t blocks_per_chunk, std::uint32_t num_device_blocks);

/// What a client saw.
struct client_record {
  std::vector<token_id> tokens;
  std::string text;
  std::optional<request_summary> summary;  ///< once the request has ended
  std::size_t num_terminal_events = 0;
};

class test_engine {
 public:
  explicit test_engine(engine_options options = {});
  /// Unless the engine has failed: settles everything, then: nothing left in flight, all blocks free, integrity holds, every request ended once,
  /// no block was ever wrong.
  ~test_engine();

  // -- driving -------------------------------------------------------------------------------------------------

  /// Queues a request without running anything. Its output is `record(id)`.
  request_id submit(std::vector<token_id> prompt, std::uint32_t max_tokens, std::vector<std::string> stop = {},
                    std::string salt = {});
  /// The same, with everything that can be said of a request but its id.
  request_id submit(request_params params, std::vector<std::string> stop = {});
  /// As far as everything goes without a copy ending.
  void run() { system.run_all(); }
  /// Copies end, in the order of streams, and everything goes on until nothing is left to do.
  void run_to_idle();
  /// The same, and timers run out that are due within a second, several times over.
  void run_past_pauses();
  /// One whole step: until the scheduler has sent the next batch, or until nothing goes on.
  void run_step();
  /// Until the request has this many tokens, prompt included, of which the last one is not computed. The next step
  /// has been dispatched then, unless a boundary holds it. False when the request ended before.
  bool run_until_tokens(request_id id, std::uint32_t num_tokens);
  bool run_until_boundary();
  void abort(request_id id);
  reset_report reset(bool reset_running_requests, bool reset_external);
  /// Puts the reset into the scheduler's mailbox; `last_reset` has the answer once it has come.
  void post_reset(bool reset_running_requests, bool reset_external);

  /// Puts a control command into the scheduler's mailbox; `last_control` has the answer once it has come.
  void post(pause_engine command);
  void post(resume_engine command);
  void post(sleep_engine command);
  void post(wake_engine command);
  void post(reset_prefix_cache command);  ///< the answer: `last_reset`
  /// Sends the preemption handler a boundary of nobody's; the answer's code, or none if it was cleared: `last_boundary`.
  void post(step_boundary boundary);
  /// Posts it and runs until it is answered, without a copy ending. Fails the test when it is not.
  template <class Command>
  control_report carry_out(Command command) {
    post(command);
    EXPECT_TRUE(system.run_until([&] { return last_control->has_value(); })) << "the command was not answered";
    return last_control->value_or(control_report{});
  }
  control_state control() { return snapshot().control; }

  /// The copies of one transfer end, and what follows from it runs.
  void complete(transfer_id id);
  void fail(transfer_id id, std::size_t num_good_copies);

  // -- looking -------------------------------------------------------------------------------------------------

  const client_record& record(request_id id) const { return *records.at(id); }
  bool has_ended(request_id id) const { return record(id).summary.has_value(); }
  engine_snapshot snapshot();
  std::optional<request_snapshot> request(request_id id);
  engine_totals totals() { return snapshot().totals; }
  engine_numbers numbers() const { return core_->numbers(); }  ///< cheaper than a snapshot
  std::vector<std::string> faults();
  /// Ids of unsettled transfers, rising.
  std::vector<transfer_id> loads();
  std::vector<transfer_id> stores();
  /// The output that the request must have, whatever happens to it.
  std::vector<token_id> reference(request_id id) const;
  void expect_reference(request_id id) const;
  /// From now on the `position`-th output token, from 0, of requests with this prompt is the end token.
  void end_at(std::vector<token_id> prompt, std::uint32_t position);

  /// What the scheduler has sent up to now, delivered or not.
  const traffic_recorder& traffic();
  /// What now stands in the blocks, or the slots, of a recorded transfer.
  std::vector<std::byte> device_bytes(transfer_id id);
  std::vector<std::byte> tier_bytes(transfer_id id);

  /// Runs a request to its end and everything to idle. Returns its id.
  request_id complete_request(std::vector<token_id> prompt, std::uint32_t max_tokens);
  /// Afterwards the host tier has every full chunk of `tokens`, and the device has nothing.
  void warm_host(const std::vector<token_id>& tokens);

  engine_options options;
  gpu::manual::manual_device device;
  checking_executor model;
  deterministic_system system;
  gpu::device_memory pool_memory;
  gpu::host_memory tier_memory;
  std::unique_ptr<gpu::stream> compute_stream, load_stream, store_stream;
  scheduler_actor scheduler;
  load_actor loader;
  store_actor storer;
  preemption_handler handler;
  executor_actor executor;
  supervisor_actor supervisor;
  std::vector<error> failures;          ///< that the supervisor reported
  std::vector<std::string> restarts;    ///< of transfer actors
  std::unique_ptr<probe<preemption_handler>> handler_probe;
  preemption_options preemption;
  std::vector<kv_event> events;         ///< if `adjust` asks for them
  std::vector<std::string> violations;  ///< of the engine's invariants; must be empty at the end

  std::map<request_id, std::shared_ptr<client_record>> records;
  std::map<request_id, request_params> params;
  std::map<request_id, request_actor> clients;
  std::shared_ptr<std::optional<reset_report>> last_reset = std::make_shared<std::optional<reset_report>>();
  std::shared_ptr<std::optional<errc>> last_boundary = std::make_shared<std::optional<errc>>();
  std::shared_ptr<std::optional<control_report>> last_control = std::make_shared<std::optional<control_report>>();

 private:
  void make_memory();
  kv_memory device_kv();
  void spawn_actors();
  void spawn_supervisor(const transfer_memory& memory);
  scheduler_config config() const;

  void check_end();
  void watch_traffic();

  scheduler_core* core_ = nullptr;  // owned by the scheduler actor; only looked at
  std::uint64_t last_request_ = 0;
  traffic_recorder traffic_;
};

/// For tests that must hold in both: GetParam() is `engine_options::async_scheduling`.
struct both_schedulings : ::testing::TestWithParam<bool> {};
#define SLUICE_IN_BOTH_SCHEDULINGS(suite)                               \
  INSTANTIATE_TEST_SUITE_P(scheduling, suite, ::testing::Bool(),        \
                           [](const auto& is_async) { return is_async.param ? "async" : "sync"; })

/// Tokens first, first + 1, ... modulo 250: distinct prompts for distinct `first`.
std::vector<token_id> make_prompt(std::size_t num_tokens, token_id first = 1);

/// Appends.
std::vector<token_id> operator+(std::vector<token_id> tokens, const std::vector<token_id>& more);

}  // namespace sluice::testing
