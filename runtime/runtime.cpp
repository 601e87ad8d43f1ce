// SPDX-License-Identifier: Apache-2.0
#include <sluice/runtime/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <future>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include <spdlog/spdlog.h>

#include <sluice/actors/request/request_actor.hpp>
#include <sluice/gpu/host/available_memory.hpp>
#include <sluice/runtime/control_check.hpp>
#include <sluice/runtime/engine.hpp>
#include <sluice/runtime/metrics.hpp>
#include <sluice/runtime/open_requests.hpp>
#include <sluice/runtime/question_actor.hpp>
#include <sluice/runtime/request_check.hpp>

namespace sluice::inline v0 {

namespace {

using std::chrono::milliseconds;

/// Aborted requests and transfers in flight get at least this long to end.
constexpr milliseconds least_grace{2000};

/// Beyond what a question itself asks the scheduler to wait.
constexpr std::chrono::minutes question_timeout{10};

/// For questions while stopping.
constexpr milliseconds snapshot_patience{500};

request_params to_params(request_id id, generation_request& request) {
  request_params params{id, std::move(request.prompt), request.max_tokens, request.sampling, request.ignore_eos,
                        std::move(request.cache_salt)};
  params.priority = request.priority;
  params.max_offload_tokens = request.max_offload_tokens.value_or(no_token_limit);
  params.max_load_tokens = request.max_load_tokens.value_or(no_token_limit);
  params.reads_prefix_cache = request.read_prefix_cache;
  return params;
}

std::string ids_of(const engine_snapshot& state, transfer_direction direction) {
  std::string text;
  for (const auto& transfer : state.transfers)
    if (transfer.direction == direction) text += (text.empty() ? "" : ", ") + std::to_string(transfer.id.value);
  return text;
}

/// "loads 3, 4 and stores 7 had not settled"
std::string unsettled_text(const engine_snapshot& state) {
  const auto loads = ids_of(state, transfer_direction::load), stores = ids_of(state, transfer_direction::store);
  if (loads.empty() && stores.empty()) return "a step had not ended";
  const auto* between = loads.empty() || stores.empty() ? "" : " and ";
  return (loads.empty() ? "" : "loads " + loads) + between + (stores.empty() ? "" : "stores " + stores) +
         " had not settled";
}

/// Its memory may still be written to, so neither it nor its streams are ever destroyed.
void leave_behind(std::unique_ptr<engine> unquiet) {
  static auto& all = *new std::vector<std::unique_ptr<engine>>;
  static std::mutex mutex;  // guards all
  const std::lock_guard lock(mutex);
  all.push_back(std::move(unquiet));
}

class engine_runtime final : public runtime {
 public:
  engine_runtime(const runtime_options& options, runtime_info info, std::shared_ptr<const tokenizer> text)
      : info_(std::move(info)), text_(std::move(text)), status_(std::make_shared<engine_status>()), metrics_(*status_),
        open_(std::make_shared<open_requests>(std::size_t{options.max_queued_requests} + options.max_num_seqs)),
        refuses_while_asleep_(options.refuse_while_asleep) {}

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
    if (is_draining_ || !engine_) return refusal(errc::shutting_down);
    if (refuses_while_asleep_ && is_sleeping()) return refusal(errc::asleep);
    const auto id = open_->reserve();
    if (!id) return refusal(errc::queue_full);
    request_setup setup;
    setup.params = to_params(*id, request);
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

  void abort_all() override {
    for (const auto& [id, actor] : open_->all()) abort(id);
  }

  void reset_prefix_cache(reset_options options, std::function<void(const reset_report&)> done) override {
    const auto wait = std::clamp(options.wait, milliseconds{0}, longest_wait);
    ask<struct reset_prefix_cache, reset_report>(
        {options.reset_running_requests, options.reset_external, options.reset_device, wait}, wait, std::move(done));
  }

  void pause(pause_options options, std::function<void(const control_report&)> done) override {
    if (auto fault = check_control(options)) return done({control_outcome::failed, {}, std::move(*fault)});
    ask<pause_engine, control_report>({options.mode, options.clear_cache, options.clear_tiers, options.timeout},
                                      options.timeout, std::move(done));
  }

  void resume(std::function<void(const control_report&)> done) override {
    ask<resume_engine, control_report>({}, {}, std::move(done));
  }

  void sleep(sleep_options options, std::function<void(const control_report&)> done) override {
    if (auto fault = check_control(options)) return done({control_outcome::failed, {}, std::move(*fault)});
    ask<sleep_engine, control_report>({options.level, options.mode, options.clear_tiers, options.timeout},
                                      options.timeout, std::move(done));
  }

  void wake(wake_options options, std::function<void(const control_report&)> done) override {
    ask<wake_engine, control_report>({options.weights, options.kv_cache}, {}, std::move(done));
  }

  bool is_paused() const override { return control() != control_state::running; }
  bool is_sleeping() const override { return control() == control_state::sleeping; }

  void snapshot(std::function<void(const engine_snapshot&)> done) override {
    ask<snapshot_query, engine_snapshot>({}, {}, std::move(done));
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
      abort_all();
      wait_for(grace, [this] { return open_->size() == 0; });
    }
    auto is_at_rest = [this] { return status_->has_failed() || status_->numbers().is_idle != 0; };
    const auto unsettled = wait_for(grace, is_at_rest) ? std::string{} : describe_unsettled();
    return end_engine(unsettled, grace);
  }

 private:
  /// `own_wait` is how long the scheduler may take because the query says so.
  template <class Query, class Answer>
  void ask(Query query, milliseconds own_wait, std::function<void(const Answer&)> done) {
    std::shared_lock lock(engine_mutex_);
    if (!engine_) {
      lock.unlock();
      return done(no_answer<Answer>(*status_));
    }
    compat::spawn<supervisor_actor, question_actor_state<Query, Answer>>(
        engine_->system(), engine_->scheduler(), std::move(query), own_wait + question_timeout,
        [done = std::move(done), status = status_](const std::optional<Answer>& answer) {
          done(answer ? *answer : no_answer<Answer>(*status));
        });
  }

  /// What callers get when the engine is gone.
  template <class Answer>
  static Answer no_answer(const engine_status& status) {
    if constexpr (std::is_same_v<Answer, control_report>)
      return {control_outcome::failed, {}, status.has_failed() ? status.failure().message : "the runtime has stopped"};
    else
      return {};
  }

  control_state control() const { return static_cast<control_state>(status_->numbers().control); }

  /// What keeps the engine from being idle, in words; empty when it is idle after all.
  std::string describe_unsettled() {
    const auto answer = std::make_shared<std::promise<engine_snapshot>>();
    auto state = answer->get_future();
    snapshot([answer](const engine_snapshot& now) { answer->set_value(now); });
    if (state.wait_for(snapshot_patience) != std::future_status::ready) return "the scheduler did not answer";
    const auto now = state.get();
    return now.is_idle ? std::string{} : unsettled_text(now);  // it may have come to rest meanwhile
  }

  /// Ends what is left of `stop`. Outside the lock: callbacks that it runs may ask again.
  tl::expected<void, error> end_engine(std::string unsettled, milliseconds grace) {
    auto ended = take_engine();
    const error cut_off{errc::shutting_down, "the runtime stopped before the request had ended"};
    for (const auto& [id, actor] : open_->all())
      if (actor) end_with(actor, id, status_->has_failed() ? failure() : cut_off);
    ended->end_actors();
    const auto busy = ended->wait_for_streams(unsettled.empty() ? grace : snapshot_patience);
    if (!busy.empty()) {
      if (unsettled.empty()) unsettled = "the stream " + busy.front() + " had not come to rest";
      leave_behind(std::move(ended));
    }
    if (status_->has_failed()) return tl::unexpected(failure());
    if (unsettled.empty()) return {};
    return tl::unexpected(error{errc::transfers_unsettled, std::move(unsettled)});
  }

  std::unique_ptr<engine> take_engine() {
    std::unique_lock lock(engine_mutex_);
    return std::move(engine_);
  }

  static tl::unexpected<error> refusal(errc code) { return tl::unexpected(error{code, std::string(describe(code))}); }

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
  const bool refuses_while_asleep_;
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
