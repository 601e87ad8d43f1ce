// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <tl/expected.hpp>

#include <sluice/actors/executor/model_executor.hpp>
#include <sluice/actors/scheduler/scheduler_actor.hpp>
#include <sluice/actors/transfer/transfer_memory.hpp>
#include <sluice/gpu/device.hpp>
#include <sluice/messages/interfaces.hpp>
#include <sluice/runtime/engine_plan.hpp>
#include <sluice/runtime/engine_status.hpp>
#include <sluice/runtime/options.hpp>

namespace sluice::inline v0 {

/// What an engine is made of besides its options.
struct engine_parts {
  std::unique_ptr<gpu::device> device;
  std::unique_ptr<model_executor> model;
  std::shared_ptr<engine_status> status;
  std::function<void(const error&)> on_failure;  ///< an actor died; on an actor thread, once
};

/// Memory, streams and actors of one runtime, in the order in which they must be made and destroyed.
class engine {
 public:
  /// Errors: insufficient_memory.
  static tl::expected<std::unique_ptr<engine>, error> make(const engine_plan& plan, const runtime_options& options,
                                                           engine_parts parts);

  /// Ends the actors if that has not been done, then the streams, which run what they hold; blocks until then. An
  /// engine whose streams do not come to rest is to be leaked instead.
  ~engine();

  /// Ends the actors and blocks until they have ended; every request must have got its terminal event, or get it soon.
  /// Idempotent. Their ends are no failures.
  void end_actors();

  /// After `end_actors`: waits at most `patience` until the streams hold no work. Returns the names of those that still
  /// do, or do not say: their memory may still be written to.
  std::vector<std::string> wait_for_streams(std::chrono::milliseconds patience);

  caf::actor_system& system() { return *system_; }
  const scheduler_actor& scheduler() const { return scheduler_; }

 private:
  engine(const engine_plan& plan, engine_parts parts);

  tl::expected<void, gpu::error> allocate();
  void spawn(const runtime_options& options);
  scheduler_hooks make_hooks(const runtime_options& options) const;
  transfer_memory memory() const;

  // The streams' work uses the model, the model uses the pool and may hold memory of the device.
  engine_plan plan_;
  std::shared_ptr<engine_status> status_;
  std::function<void(const error&)> on_failure_;
  std::unique_ptr<gpu::device> device_;
  gpu::device_memory pool_;
  gpu::host_memory tier_;
  std::unique_ptr<model_executor> model_;
  std::unique_ptr<gpu::stream> compute_, load_, store_;
  std::unique_ptr<caf::actor_system_config> config_;
  std::unique_ptr<caf::actor_system> system_;
  scheduler_actor scheduler_;
  supervisor_actor supervisor_;
  bool has_ended_actors_ = false;
};

}  // namespace sluice::inline v0
