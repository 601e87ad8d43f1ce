// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/runtime.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include <spdlog/spdlog.h>

#include <sluice/actors/request/request_actor.hpp>
#include <sluice/gpu/host/available_memory.hpp>
#include <sluice/runtime/engine.hpp>
#include <sluice/runtime/metrics.hpp>
#include <sluice/runtime/question_actor.hpp>
#include <sluice/runtime/request_check.hpp>

namespace sluice::inline v0 {

namespace {

using std::chrono::milliseconds;

/// Aborted requests and transfers in flight get at least this long to end.
constexpr milliseconds least_grace{2000};

/// The requests that have not ended, for the threads outside the actors. Any thread.
class open_requests {
 public:
  explicit open_requests(std::size_t limit) : limit_(limit) {}

  /// Takes a place; nothing when all are taken.
  std::optional<request_id> reserve() {
    std::lock_guard lock(mutex_);
    if (actors_.size() >= limit_) return std::nullopt;
    const request_id id{++last_id_};
    actors_.emplace(id, request_actor{});
    return id;
  }
  /// A request that ended in the meantime is not put back.
  void set(request_id id, request_actor actor) {
    std::lock_guard lock(mutex_);
    if (auto found = actors_.find(id); found != actors_.end()) found->second = std::move(actor);
  }
  void remove(request_id id) {
    std::lock_guard lock(mutex_);
    actors_.erase(id);
  }
  request_actor find(request_id id) const {
    std::lock_guard lock(mutex_);
    auto found = actors_.find(id);
    return found == actors_.end() ? request_actor{} : found->second;
  }
  std::vector<std::pair<request_id, request_actor>> all() const {
    std::lock_guard lock(mutex_);
    return {actors_.begin(), actors_.end()};
  }
  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return actors_.size();
  }

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<request_id, request_actor> actors_;
  std::uint64_t last_id_ = 0;
};

class engine_runtime final : public runtime {
 public:
  engine_runtime(const runtime_options& options, runtime_info info, std::shared_ptr<const tokenizer> text)
      : info_(std::move(info)), text_(std::move(text)), status_(std::make_shared<engine_status>()), metrics_(*status_),
        open_(std::make_shared<open_requests>(std::size_t{options.max_queued_requests} + options.max_num_seqs)) {}

  ~engine_runtime() override {
    if (auto stopped = stop(milliseconds{0}); !stopped) spdlog::error("{}", stopped.error().message);
  }

  tl::expected<void, error> start(const engine_plan& plan, const runtime_options& options,
                                  std::unique_ptr<gpu::device> device, std::unique_ptr<model_executor> model) {
    auto on_failure = [status = status_, open = open_](const error& failure) { fail(*status, *open, failure); };
    auto made = engine::make(plan, options, {std::move(device), std::move(model), status_, on_failure});
    if (!made) return tl::unexpected(made.error());
    engine_ = std::move(*made);
    return {};
  }

  const runtime_info& info() const override { return info_; }

  tl::expected<request_id, error> submit(generation_request request, std::shared_ptr<request_sink> sink) override {
    if (status_->has_failed()) return tl::unexpected(status_->failure());
    if (auto fault = check_request(request, info_)) return tl::unexpected(*fault);
    std::shared_lock lock(engine_mutex_);
    if (is_draining_ || !engine_) return tl::unexpected(error{errc::shutting_down, std::string(describe(errc::shutting_down))});
    const auto id = open_->reserve();
    if (!id) return tl::unexpected(error{errc::queue_full, std::string(describe(errc::queue_full))});
    request_setup setup;
    setup.params = {*id, std::move(request.prompt), request.max_tokens, request.sampling, request.ignore_eos,
                    std::move(request.cache_salt)};
    setup.stop = std::move(request.stop);
    setup.text = text_;
    setup.sink = metrics_.timed(std::move(sink));
    setup.on_end = [open = open_](request_id ended) { open->remove(ended); };
    const auto actor = compat::spawn<request_actor, request_actor_state>(engine_->system(), engine_->scheduler(),
                                                                         std::move(setup));
    open_->set(*id, actor);
    if (status_->has_failed()) end_with(actor, *id, status_->failure());  // it failed meanwhile
    return *id;
  }

  void abort(request_id id) override {
    if (const auto actor = open_->find(id)) compat::anon_mail(client_gone{}).send(actor);
  }

  void reset_prefix_cache(reset_options options, std::function<void(const reset_report&)> done) override {
    ask<struct reset_prefix_cache, reset_report>({options.reset_running_requests, options.reset_external},
                                                 std::move(done));
  }

  void snapshot(std::function<void(const engine_snapshot&)> done) override {
    ask<snapshot_query, engine_snapshot>({}, std::move(done));
  }

  std::string metrics() const override { return metrics_.text(); }

  health state() const override {
    if (status_->has_failed()) return health::failed;
    return is_draining_ ? health::draining : health::serving;
  }

  error failure() const override { return status_->failure(); }

  void begin_drain() override { is_draining_ = true; }

  tl::expected<void, error> stop(milliseconds deadline) override {
    std::lock_guard stopping(stopping_);
    {
      std::unique_lock lock(engine_mutex_);  // every submission either has its place by now or is refused
      is_draining_ = true;
      if (!engine_) return {};
    }
    const auto grace = std::max(deadline, least_grace);
    if (!wait_for(deadline, [this] { return open_->size() == 0; })) {
      // Again and again: a request that was being submitted meanwhile is not there the first time.
      for (int round = 0; round < 10; ++round) {
        for (const auto& [id, actor] : open_->all()) abort(id);
        if (wait_for(grace / 10, [this] { return open_->size() == 0; })) break;
      }
    }
    const auto is_settled = wait_for(grace, [this] { return status_->has_failed() || status_->numbers().is_idle != 0; });
    // Ended outside the lock: callbacks that it runs may ask again.
    auto ended = take_engine();
    if (status_->has_failed()) return tl::unexpected(status_->failure());
    if (is_settled) return {};
    const auto numbers = status_->numbers();
    static_cast<void>(ended.release());  // its memory may still be written to
    return tl::unexpected(error{errc::transfers_unsettled,
                                std::to_string(numbers.loads_in_flight) + " loads and " +
                                    std::to_string(numbers.stores_in_flight) + " stores had not settled"});
  }

 private:
  template <class Query, class Answer>
  void ask(Query query, std::function<void(const Answer&)> done) {
    std::shared_lock lock(engine_mutex_);
    if (!engine_) {
      lock.unlock();
      return done(Answer{});
    }
    compat::spawn<supervisor_actor, question_actor_state<Query, Answer>>(
        engine_->system(), engine_->scheduler(), std::move(query),
        [done = std::move(done)](const std::optional<Answer>& answer) { done(answer.value_or(Answer{})); });
  }

  std::unique_ptr<engine> take_engine() {
    std::unique_lock lock(engine_mutex_);
    return std::move(engine_);
  }

  static void end_with(const request_actor& actor, request_id id, const error& failure) {
    compat::anon_mail(request_finished{id, {}, finish_reason::error, failure.code, failure.message, {}}).send(actor);
  }

  /// On the supervisor's thread.
  static void fail(engine_status& status, open_requests& open, const error& failure) {
    spdlog::error("{}", failure.message);
    status.fail(failure);
    for (const auto& [id, actor] : open.all())
      if (actor) end_with(actor, id, failure);
  }

  static bool wait_for(milliseconds deadline, const std::function<bool()>& is_done) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!is_done()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(milliseconds{2});
    }
    return true;
  }

  const runtime_info info_;
  const std::shared_ptr<const tokenizer> text_;
  const std::shared_ptr<engine_status> status_;
  runtime_metrics metrics_;
  const std::shared_ptr<open_requests> open_;
  std::atomic<bool> is_draining_{false};
  std::mutex stopping_;             // one stop at a time
  std::shared_mutex engine_mutex_;  // guards engine_; exclusive to end it
  std::unique_ptr<engine> engine_;
};

}  // namespace

tl::expected<std::unique_ptr<runtime>, error> runtime::start(runtime_options options,
                                                             std::unique_ptr<gpu::device> device,
                                                             std::unique_ptr<model_executor> model,
                                                             std::shared_ptr<const tokenizer> tokenizer) {
  const auto plan = plan_engine(options, *device, *model, gpu::host::available_memory_bytes());
  if (!plan) return tl::unexpected(plan.error());
  const auto& config = plan->scheduler;
  runtime_info info{config.model,          device->info().name,    config.block_size(0),      config.max_model_len,
                    config.num_device_blocks, config.num_host_slots, config.kv.bytes_per_block};
  auto made = std::make_unique<engine_runtime>(options, std::move(info), std::move(tokenizer));
  if (auto started = made->start(*plan, options, std::move(device), std::move(model)); !started)
    return tl::unexpected(started.error());
  return made;
}

}  // namespace sluice::inline v0
