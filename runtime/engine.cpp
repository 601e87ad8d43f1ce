// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/engine.hpp>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include <sluice/actors/executor/executor_actor.hpp>
#include <sluice/actors/preemption/preemption_handler_actor.hpp>
#include <sluice/actors/scheduler/host_tier_index.hpp>
#include <sluice/actors/transfer/load_actor.hpp>
#include <sluice/actors/transfer/store_actor.hpp>
#include <sluice/runtime/supervisor_actor.hpp>

namespace sluice::inline v0 {

namespace {

std::unique_ptr<caf::actor_system_config> make_config(std::size_t num_threads) {
  compat::init_types<caf::id_block::sluice>();
  auto config = std::make_unique<caf::actor_system_config>();
  compat::register_types<caf::id_block::sluice>(*config);
  compat::register_error_codes<errc>(*config);
  compat::configure_scheduler(*config, num_threads);
  return config;
}

/// Moves `made` into `target`, or returns its error.
template <class T>
tl::expected<void, gpu::error> put(tl::expected<T, gpu::error> made, T& target) {
  if (!made) return tl::unexpected(made.error());
  target = std::move(*made);
  return {};
}

}  // namespace

tl::expected<std::unique_ptr<engine>, error> engine::make(const engine_plan& plan, const runtime_options& options,
                                                          engine_parts parts) {
  std::unique_ptr<engine> made(new engine(plan, std::move(parts)));
  const compat::thread_visit visit;  // the caller may end on another thread than the one that stops
  if (auto allocated = made->allocate(); !allocated)
    return tl::unexpected(error{errc::insufficient_memory, to_string(allocated.error())});
  made->config_ = make_config(options.num_actor_threads);
  made->system_ = std::make_unique<caf::actor_system>(*made->config_);
  made->spawn(options);
  return made;
}

engine::engine(const engine_plan& plan, engine_parts parts)
    : plan_(plan), status_(std::move(parts.status)), on_failure_(std::move(parts.on_failure)),
      device_(std::move(parts.device)), model_(std::move(parts.model)) {}

engine::~engine() {
  if (!system_) return;
  const compat::thread_visit visit;
  end_actors();
  // Nobody enqueues any more. Ending the streams runs what they hold; callbacks still find a living system.
  compute_.reset();
  load_.reset();
  store_.reset();
  scheduler_ = scheduler_actor{};
  supervisor_ = supervisor_actor{};
  system_.reset();
  model_.reset();
}

void engine::end_actors() {
  if (std::exchange(has_ended_actors_, true)) return;
  const compat::thread_visit visit;
  compat::anon_mail(stop_watching{}).send(supervisor_);
  system_->await_all_actors_done();
}

std::vector<std::string> engine::wait_for_streams(std::chrono::milliseconds patience) {
  struct rest {
    std::mutex mutex;  // guards busy
    std::condition_variable changed;
    std::set<std::string> busy;
  };
  const auto state = std::make_shared<rest>();  // callbacks may come after this call has returned
  for (auto* stream : {compute_.get(), load_.get(), store_.get()}) state->busy.insert(stream->name());
  for (auto* stream : {compute_.get(), load_.get(), store_.get()})
    static_cast<void>(stream->call_when_reached([state, name = stream->name()](const std::optional<gpu::error>&) {
      const std::lock_guard lock(state->mutex);
      state->busy.erase(name);
      state->changed.notify_all();
    }));
  std::unique_lock lock(state->mutex);
  state->changed.wait_for(lock, patience, [&] { return state->busy.empty(); });
  return {state->busy.begin(), state->busy.end()};
}

tl::expected<void, gpu::error> engine::allocate() {
  return put(device_->allocate_device(plan_.pool_bytes), pool_)
      .and_then([&] { return put(device_->allocate_host(plan_.tier_bytes), tier_); })
      .and_then([&] { return put(device_->make_stream("compute"), compute_); })
      .and_then([&] { return put(device_->make_stream("load"), load_); })
      .and_then([&] { return put(device_->make_stream("store"), store_); })
      .map([&] { model_->bind(memory().device); });
}

transfer_memory engine::memory() const {
  const auto& config = plan_.scheduler;
  const kv_segment whole_pool{pool_.view().data, config.kv.bytes_per_block, config.kv.bytes_per_block};
  kv_memory device{config.num_device_blocks, {}};
  device.segments.resize(config.num_groups(), {whole_pool});
  return {std::move(device), tier_.view(), config.kv.bytes_per_block, config.blocks_per_chunk};
}

void engine::spawn(const runtime_options& options) {
  std::unique_ptr<tier_index> tier;
  if (const auto num_slots = plan_.scheduler.num_host_slots; num_slots > 0)
    tier = std::make_unique<host_tier_index>(num_slots, make_eviction_policy(options.eviction_policy, num_slots));
  preemption_options preemption;
  preemption.flush_timeout = options.flush_timeout;
  const auto boundary_timeout = preemption.query_timeout + preemption.flush_timeout + std::chrono::seconds{5};
  auto core = std::make_unique<scheduler_core>(plan_.scheduler, std::move(tier), status_->histograms());
  status_->publish(core->numbers());
  scheduler_ = compat::spawn<scheduler_actor, scheduler_actor_state>(*system_, std::move(core), boundary_timeout,
                                                                     make_hooks(options));
  auto* device = device_.get();
  supervised_engine supervised{scheduler_, {}, {}, {}};
  supervised.make_loads = [this, device] {
    const stream_lease lease{device, load_.get()};
    return compat::spawn<load_actor, load_actor_state>(*system_, scheduler_, lease, memory());
  };
  supervised.make_stores = [this, device] {
    const stream_lease lease{device, store_.get()};
    return compat::spawn<store_actor, store_actor_state>(*system_, scheduler_, lease, memory());
  };
  auto& actors = supervised.actors;
  actors.loads = supervised.make_loads();
  actors.stores = supervised.make_stores();
  actors.handler =
      compat::spawn<preemption_handler, preemption_handler_state>(*system_, actors.loads, actors.stores, preemption);
  actors.executor = compat::spawn<executor_actor, executor_actor_state>(
      *system_, scheduler_, model_.get(), stream_lease{device, compute_.get()}, pool_.view());
  compat::anon_mail(connect_engine{actors}).send(scheduler_);
  supervisor_options watching;
  watching.on_failure = on_failure_;
  watching.on_restart = [](const std::string& what) { spdlog::error("{}", what); };
  supervisor_ = compat::spawn<supervisor_actor, supervisor_actor_state>(*system_, std::move(supervised), std::move(watching));
}

scheduler_hooks engine::make_hooks(const runtime_options& options) const {
  scheduler_hooks hooks;
  if (options.on_kv_events) hooks.on_events = options.on_kv_events;
  hooks.on_progress = [status = status_](const scheduler_core& core) { status->publish(core.numbers()); };
  hooks.on_violation = [policy = options.invariant_policy](const invariant_violation& violation) {
    spdlog::error("invariant violated in step {}: {}", violation.step.value, violation.what);
    if (policy == on_invariant::abort_process) std::abort();
  };
  return hooks;
}

}  // namespace sluice::inline v0
