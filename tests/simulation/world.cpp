// SPDX-License-Identifier: Apache-2.0
#include "world.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <support/test_engine.hpp>

#include "boundary_monitor.hpp"
#include "coverage_counter.hpp"
#include "engine_setup.hpp"
#include "table_monitor.hpp"

namespace sluice::simulation {

namespace {

using namespace std::chrono_literals;
using testing::test_engine;

/// One simulated engine and what is known of it.
class world {
 public:
  explicit world(const setup& setup) : engine_(make_options(setup, tier_hooks(), max_model_len_)), boundaries_monitor_(engine_), tables_monitor_(engine_), counter_(engine_) {
    engine_.system.before_turn = [this] {
      boundaries_monitor_.look();
      tables_monitor_.look();
    };
  }

  ~world() { engine_.system.before_turn = [] {}; }  // the engine, which ends last, settles first
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  void apply(const event& event) {
    const auto& n = event.numbers;
    counter_.happened(event_names[static_cast<std::size_t>(event.kind)]);
    switch (event.kind) {
      case event_kind::submit: return submit(n);
      case event_kind::abort: return abort(n[0]);
      case event_kind::reset: return reset(n[0], n[1]);
      case event_kind::pause:
        return post(pause_engine{mode(n[0]), n[1] % 2 == 0, n[1] / 2 % 2 == 0, std::chrono::seconds{n[2]}});
      case event_kind::sleep:
        return post(sleep_engine{1 + n[0] % 2, mode(n[1]), n[2] % 2 == 0, std::chrono::seconds{n[3]}});
      case event_kind::wake: return post(wake_engine{n[0] % 2 == 0, n[0] / 2 % 2 == 0});
      case event_kind::resume: return post(resume_engine{});
      case event_kind::start_copies: return with_copies(n[0], [&](auto tag) { start(tag, n[1]); });
      case event_kind::end_copies:
        return with_copies(n[0], [&](auto tag) { try_to(engine_.device.complete_copies(tag)); });
      case event_kind::fail_copies: return with_copies(n[0], [&](auto tag) { fail(tag, n[1], n[2]); });
      case event_kind::refuse_copies:
        ++num_made_to_fail_;
        return expect_ok(engine_.device.refuse_next_copies(n[0] % 2 == 0 ? "load" : "store",
                                                           gpu::error{"enqueue_copies", 5, "drawn", 0}));
      case event_kind::compute: return compute(n[0]);
      case event_kind::turns:
        for (std::uint32_t i = 0; i < n[0] && turn(0); ++i) {}
        return;
      case event_kind::turn_of:
        for (std::uint32_t i = 0; i < n[1] && turn(n[0]); ++i) {}
        return;
      case event_kind::starve:
        starved_ = n[0];
        num_starved_turns_ = n[1];
        return;
      case event_kind::wait:
        for (std::uint32_t i = 0; i < n[0] % 16; ++i) {
          advance(std::chrono::milliseconds{n[1]});
          for (int turns = 0; turns < 500 && turn(0); ++turns) {}
        }
        return;
      case event_kind::advance: return advance(std::chrono::milliseconds{n[0]});
      case event_kind::kill_loads:
        if (may_kill()) engine_.system.kill(engine_.loader);
        return;
      case event_kind::kill_stores:
        if (may_kill()) engine_.system.kill(engine_.storer);
        return;
      case event_kind::refuse_compute: return refuse_compute();
      case event_kind::older_load: return ask_for_older_load();
      case event_kind::settle: return settle();
    }
  }

  void check() {
    counter_.look();
    if (!engine_.snapshot().is_boundary_open) {
      EXPECT_EQ(engine_.faults(), std::vector<std::string>{});
    }
    EXPECT_EQ(engine_.violations, std::vector<std::string>{});
    EXPECT_EQ(engine_.model.violations(), std::vector<std::string>{});
    EXPECT_EQ(boundaries_monitor_.take_faults(), std::vector<std::string>{});
    EXPECT_EQ(tables_monitor_.take_faults(), std::vector<std::string>{});
    check_failures();
    for (const auto& failure : engine_.failures) ADD_FAILURE() << "the engine failed: " << failure.message;
  }

  void end() {
    settle();
    advance(5min);
    settle();
    check();
    for (const auto& answer : resets_) EXPECT_TRUE(answer->has_value()) << "a reset was not answered";
    for (const auto& answer : boundaries_) check_refused(answer);
    for (const auto& answer : controls_)
      if (was_answered(answer)) counter_.happened("control answer " + std::to_string(static_cast<int>((*answer)->outcome)));
    for (const auto& [id, record] : engine_.records) check_output(id);
    EXPECT_EQ(engine_.device.num_premature_releases(), 0U);
  }

  std::uint64_t num_steps() const { return engine_.numbers().totals.steps; }
  coverage seen() { return counter_.take(); }

 private:
  checking_tier::hooks tier_hooks() {
    return {[this] { oldest_tier_epoch_ = engine_.model.mark_epoch_after(last_step_); },
            [this](slot_id slot, const chunk_key& key) { check_slot(slot, key); },
            [](const std::string& what) { ADD_FAILURE() << what; }};
  }

  static pause_mode mode(std::uint32_t number) {  // aborts are rare
    return number % 8 == 0 ? pause_mode::abort : number % 2 == 0 ? pause_mode::wait : pause_mode::keep;
  }

  /// After a reset of the tier nothing in it may have been computed before.
  void check_slot(slot_id slot, const chunk_key& key) {
    const auto block_bytes = engine_.model.kv(engine_.options.block_size).bytes_per_block;
    const auto factor = engine_.options.blocks_per_chunk;
    const auto memory = engine_.tier_memory.view();
    for (std::uint32_t i = 0; i < factor; ++i) {
      const std::span block(memory.data + (std::size_t{slot.value} * factor + i) * block_bytes, block_bytes);
      const auto epoch = engine_.model.oldest_epoch(key.group.value, block);
      if (!epoch)
        ADD_FAILURE() << "slot " << slot.value << " became readable with a torn block";
      else if (*epoch < oldest_tier_epoch_)
        ADD_FAILURE() << "slot " << slot.value << " became readable with content from before a reset of the tier";
    }
  }

  /// Copies fail because they were made to. What an actor that ended had on its stream counts as failed, too.
  void check_failures() {
    const auto& totals = engine_.numbers().totals;
    const auto num_failed = was_killed_ ? 0 : totals.loads_failed + totals.stores_failed;
    EXPECT_LE(num_failed, num_made_to_fail_) << "transfers failed by themselves";
  }

  void submit(const std::array<std::uint32_t, event::max_numbers>& n) {
    if (engine_.numbers().requests_waiting + engine_.numbers().requests_running >= 12) return;
    request_params params;
    params.prompt = testing::make_prompt(1 + n[0] % (max_model_len_ - 1), static_cast<token_id>(1 + 80 * (n[1] % 3)));
    for (std::uint32_t i = 0; i < n[2] && params.prompt.size() + 1 < max_model_len_; ++i)
      params.prompt.push_back(static_cast<token_id>((n[0] + i) % 4));
    params.max_tokens = 1 + n[3] % (max_model_len_ - static_cast<std::uint32_t>(params.prompt.size()));
    const auto traits = n[4];
    if (traits & 1U) params.cache_salt = "salt";
    if (traits & 2U) params.max_offload_tokens = n[0] / 2;
    if (traits & 4U) params.max_load_tokens = n[0] / 3;
    if (traits & 8U) params.reads_prefix_cache = false;
    if (traits & 16U) params.ignore_eos = true;
    if (traits & 32U) params.sampling = {0.8, n[0]};
    params.priority = static_cast<std::int32_t>(n[5]);
    engine_.submit(std::move(params));
  }

  void abort(std::uint32_t which) {
    const auto requests = engine_.snapshot().requests;
    if (!requests.empty()) engine_.abort(requests[which % requests.size()].id);
  }

  void reset(std::uint32_t bits, std::uint32_t wait_s) {
    engine_.post(reset_prefix_cache{(bits & 1U) != 0, (bits & 6U) == 6U, (bits & 8U) == 0 || (bits & 6U) != 6U,
                                    std::chrono::seconds{wait_s}});
    resets_.push_back(engine_.last_reset);
  }

  template <class Command>
  void post(Command command) {
    engine_.post(command);
    controls_.push_back(engine_.last_control);
  }

  template <class Function>
  void with_copies(std::uint32_t which, Function function) {
    const auto tags = engine_.device.outstanding_tags();
    if (!tags.empty()) function(tags[which % tags.size()]);
  }

  void start(std::uint64_t tag, std::uint32_t num_copies) {
    if (!engine_.device.start_copies(tag, num_copies)) try_to(engine_.device.start_copies(tag, 0));
  }

  void fail(std::uint64_t tag, std::uint32_t num_good, std::uint32_t how) {
    const auto leaves = how % 2 == 0 ? gpu::manual::bad_copy::torn : gpu::manual::bad_copy::untouched;
    ++num_made_to_fail_;
    if (!engine_.device.fail_copies(tag, num_good, leaves)) try_to(engine_.device.fail_copies(tag, 0, leaves));
  }

  /// Copies that wait for a step cannot be driven before it.
  static void try_to(const gpu::status&) {}
  static void expect_ok(const gpu::status& status) { EXPECT_TRUE(status) << (status ? "" : to_string(status.error())); }

  void compute(std::uint32_t num_operations) {
    for (std::uint32_t i = 0; i < num_operations && engine_.device.step("compute"); ++i) {}
  }

  void advance(std::chrono::nanoseconds time) {
    engine_.system.advance(time);
    since_kills_ += time;
    if (since_kills_ > 2min) num_kills_ = 0;
  }

  /// An engine whose transfer actors end too often gives up, which is another story.
  bool may_kill() {
    if (num_kills_ == 8) return false;
    ++num_kills_;
    was_killed_ = true;
    since_kills_ = 0s;
    return true;
  }

  void refuse_compute() {
    ++num_refused_steps_;
    expect_ok(engine_.device.refuse_next_call("compute", gpu::error{"call_when_reached", 5, "drawn", 0}));
  }

  /// No scheduler sends this: every load keeps its blocks until it has settled. The handler must not rely on that.
  void ask_for_older_load() {
    engine_.post(step_boundary{{}, {{{0}, transfer_direction::load, {1}}}, {}});
    boundaries_.push_back(engine_.last_boundary);
  }

  static void check_refused(const decltype(test_engine::last_boundary)& answer) {
    if (!answer->has_value()) {
      ADD_FAILURE() << "a boundary was not answered";
    } else if (**answer != errc::older_load_pending && **answer != errc::transfer_actor_lost) {
      ADD_FAILURE() << "a boundary with an older load was answered with " << to_string(**answer);
    }
  }

  /// One turn of one actor.
  bool turn(std::size_t nth) {
    return observed([&] {
      if (num_starved_turns_ == 0) return engine_.system.step_nth(nth);
      --num_starved_turns_;
      switch (starved_ % 5) {
        case 0: return engine_.system.step_other_than(engine_.executor);
        case 1: return engine_.system.step_other_than(engine_.handler);
        case 2: return engine_.system.step_other_than(engine_.loader);
        case 3: return engine_.system.step_other_than(engine_.storer);
        default: return engine_.system.step_other_than(engine_.scheduler);
      }
    });
  }

  /// Once a reset has emptied device and tier, everything that later steps read must have been written later.
  template <class Function>
  bool observed(Function step) {
    const auto before = engine_.numbers().totals;
    if (!step()) return false;
    const auto after = engine_.numbers().totals;
    if (after.resets_all_success != before.resets_all_success) engine_.model.begin_epoch_after(last_step_);
    if (after.steps + after.boundaries != before.steps + before.boundaries) last_step_ = engine_.snapshot().last_step;
    return true;
  }

  /// Until nothing goes on by itself, pauses between attempts included; whatever holds the engine is ended.
  void settle() {
    num_starved_turns_ = 0;
    constexpr int max_turns = 200'000;
    for (int round = 0; round < 12; ++round) {
      if (engine_.numbers().control != static_cast<std::uint64_t>(control_state::running)) {
        post(resume_engine{});
        post(wake_engine{});
      }
      int num_turns = 0;
      do
        while (turn(0))
          if (++num_turns > max_turns) {
            ADD_FAILURE() << "actors still busy after " << num_turns << " turns";
            return;
          }
      while (engine_.device.run_everything() > 0 || engine_.system.num_pending() > 0);
      if (engine_.numbers().is_idle != 0 && engine_.numbers().control == static_cast<std::uint64_t>(control_state::running))
        return;
      advance(100ms);
    }
    const auto left = engine_.snapshot();
    ADD_FAILURE() << "nothing goes on, and " << left.requests.size() << " requests and " << left.transfers.size()
                  << " transfers are left, control state " << static_cast<int>(left.control);
  }

  static bool was_answered(const decltype(test_engine::last_control)& answer) {
    EXPECT_TRUE(answer->has_value()) << "a command was not answered";
    return answer->has_value();
  }

  void check_output(request_id id) {
    if (!engine_.has_ended(id)) {
      ADD_FAILURE() << "request " << id.value << " did not end";
      return;
    }
    const auto& summary = *engine_.record(id).summary;
    counter_.happened("ended " + std::to_string(static_cast<int>(summary.reason)));
    if (summary.failure.code != errc::none) counter_.happened("errc " + std::string(to_string(summary.failure.code)));
    const auto& tokens = engine_.record(id).tokens;
    auto expected = engine_.reference(id);
    const bool is_whole = summary.reason == finish_reason::stop || summary.reason == finish_reason::length;
    if (!is_whole) expected.resize(std::min(tokens.size(), expected.size()));
    EXPECT_EQ(tokens, expected) << "request " << id.value;
    if (summary.reason != finish_reason::error) return;
    if (summary.failure.code == errc::device_failed && num_refused_steps_ > 0) return;
    // Else only this: it does not fit beside blocks that a transfer out of time, or without its actor, still touches.
    EXPECT_EQ(summary.failure.code, errc::out_of_blocks) << "request " << id.value << ": " << summary.failure.message;
    const auto& totals = engine_.numbers().totals;
    EXPECT_GT(totals.loads_timed_out + totals.stores_timed_out, 0U) << "request " << id.value << " did not fit";
  }

  std::uint32_t max_model_len_ = 0;
  test_engine engine_;
  boundary_monitor boundaries_monitor_;
  table_monitor tables_monitor_;
  coverage_counter counter_;
  std::vector<decltype(test_engine::last_reset)> resets_;
  std::vector<decltype(test_engine::last_control)> controls_;
  std::vector<decltype(test_engine::last_boundary)> boundaries_;
  std::uint64_t oldest_tier_epoch_ = 0;
  std::uint64_t num_refused_steps_ = 0;
  step_id last_step_;  // opened before the current turn
  std::uint32_t starved_ = 0, num_starved_turns_ = 0;
  std::uint64_t num_made_to_fail_ = 0;
  int num_kills_ = 0;
  bool was_killed_ = false;
  std::chrono::nanoseconds since_kills_{0};
};

}  // namespace

outcome run(const trace& trace) {
  outcome result;
  ::testing::TestPartResultArray found;
  {
    const ::testing::ScopedFakeTestPartResultReporter keeps(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &found);
    world world(trace.engine);
    for (const auto& event : trace.events) {
      world.apply(event);
      world.check();
      if (found.size() > 0) break;
      ++result.num_events;
    }
    if (found.size() == 0) world.end();
    result.num_steps = world.num_steps();
    result.seen = world.seen();
  }
  for (int i = 0; i < found.size(); ++i)
    if (const auto& part = found.GetTestPartResult(i); part.failed()) result.violations.emplace_back(part.message());
  return result;
}

}  // namespace sluice::simulation
