// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/transfer/transfer_queue.hpp>
#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// The executor: has the model enqueue each step on the compute stream, records the step's event behind it, says so,
/// and reports the sampled tokens once the stream has reached it. A step may come while the one before it is on the
/// stream. Steps are reported in the order in which they came, failed ones too.
///
/// Until the stream has passed a step, the step's work reads its batch and the tokens of the step before, and writes
/// its own tokens. Hence:
///
/// 1. The stream's callback shares the step's record, so that it outlives an executor that dies.
/// 2. A record shares the tokens of the step before it, but not that step's record: there is no chain.
/// 3. A record without a callback, because the stream refused it or the model threw, is kept until a later step is
///    reached. What is left when the executor ends is handed to the stream, behind all its work.
struct executor_actor_state {
  static constexpr const char* name = "executor";

  /// `model` is the runtime's; `pool` is the memory of the device's blocks, a whole allocation of `compute.device`.
  executor_actor_state(executor_actor::pointer self, scheduler_actor scheduler, model_executor* model,
                       stream_lease compute, gpu::memory_view pool);
  ~executor_actor_state();
  executor_actor_state(const executor_actor_state&) = delete;
  executor_actor_state& operator=(const executor_actor_state&) = delete;

  executor_actor::behavior_type make_behavior();

  using token_list = std::shared_ptr<std::vector<sampled_token>>;

  struct failure {
    errc code = errc::none;
    std::string message;
  };

  struct step_record {
    step_batch batch;
    token_list previous;
    token_list sampled;
    std::optional<failure> failed;
    bool has_ended = false;
  };
  using record_ptr = std::shared_ptr<step_record>;

  /// Takes the batch out of the message.
  void execute(execute_step& message);
  gpu::status enqueue(step_record& record);
  gpu::status call_back(const record_ptr& record);
  void reached(const compute_reached& message);
  /// The first failure of a step counts.
  void end(step_record& record, std::optional<failure> failed);
  void report(const step_record& record);

  /// Does nothing for memory that is in the wanted state; stops at the first error.
  memory_changed change(const change_memory& message);
  memory_changed change_pool(bool is_release);
  memory_changed change_weights(bool is_release);

  executor_actor::pointer self;
  scheduler_actor scheduler;
  model_executor* model;
  stream_lease compute;
  gpu::memory_view pool;
  bool is_pool_released = false;
  bool are_weights_released = false;

  token_list last_sampled = std::make_shared<std::vector<sampled_token>>();  ///< of the step that came last
  std::deque<record_ptr> unreported;                                         ///< in the order in which they came
  std::vector<record_ptr> kept;  ///< those without a callback that the stream may still use
};

}  // namespace sluice::inline v0
