// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/transfer/transfer_queue.hpp>
#include <sluice/messages/interfaces.hpp>

namespace sluice::inline v0 {

/// The executor: has the model enqueue each step on the compute stream, records the step's event behind it, says so,
/// and reports the sampled tokens once the stream has reached it.
struct executor_actor_state {
  static constexpr const char* name = "executor";

  executor_actor_state(executor_actor::pointer self, scheduler_actor scheduler, model_executor* model,
                       stream_lease compute);
  executor_actor::behavior_type make_behavior();

  /// A step on the stream; the model reads the batch and writes the tokens until the stream has reached its end. The
  /// stream's callback shares it, so that it outlives an executor that dies.
  struct step_in_flight {
    step_batch batch;
    std::vector<sampled_token> sampled;
  };

  void execute(const step_batch& batch);
  void fail(step_id step, errc code, std::string message);

  executor_actor::pointer self;
  scheduler_actor scheduler;
  model_executor* model;  ///< owned by the runtime
  stream_lease compute;
  std::map<step_id, std::shared_ptr<step_in_flight>> in_flight;
};

}  // namespace sluice::inline v0
