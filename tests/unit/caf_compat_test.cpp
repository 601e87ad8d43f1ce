// SPDX-License-Identifier: Apache-2.0
//
// messages/caf_compat.hpp on both versions of CAF, with CAF's own threads.
#include <gtest/gtest.h>

#include <thread>

#include "caf_compat_actors.hpp"

namespace sluice::inline v0 {
namespace compat_test {
namespace {

// -- one run over every feature, on both versions of CAF, with threads
// --------------------------------------------------

struct script_log {
  std::vector<std::string> lines;
};

using script_actor = compat::typed_actor<caf::result<void>(tick), caf::result<void>(start)>;

// Does one thing after the other; every arrow below is a message.
struct script_state {
  static constexpr const char* name = "script";

  script_state(script_actor::pointer self, worker_actor worker, worker_actor other, std::unique_ptr<script_log*> log)
      : self_(self), worker_(std::move(worker)), other_(std::move(other)), log_(std::move(log)), monitors_(self) {}

  script_actor::behavior_type make_behavior() {
    monitors_.add(worker_, [this](const caf::error& reason) { worker_down(reason); });
    monitors_.add(other_, [this](const caf::error&) { say("removed monitor fired"); });
    return {
        [this](const tick&) { timed_out_flush(); },
        [this](const start& msg) { ask(msg); },
    };
  }

  void say(std::string line) { (*log_)->lines.push_back(std::move(line)); }

  void ask(const start& msg) {
    say(compat::sender_as<worker_actor>(self_) ? "named" : "anonymous");
    compat::mail(self_, msg)
        .request(worker_, 10s)
        .then(
            [this](const started& answer) {
              say("started " + std::to_string(answer.id.value));
              ask_in_vain();
            },
            [this](const caf::error&) { say("unexpected"); });
  }

  void ask_in_vain() {
    compat::mail(self_, start{{0}})
        .request(worker_, 10s)
        .then([this](const started&) { say("unexpected"); },
              [this](const caf::error& err) {
                say("error " + std::string{to_string(compat::code_of<fault>(err).value_or(fault::none))} + " " +
                    std::to_string(compat::context_of<ids>(err).size()) + " " +
                    std::to_string(compat::context_of<std::string>(err).size()));
                flush_and_release();
              });
  }

  void flush_and_release() {
    compat::mail(self_, flush{{{1}}})
        .request(worker_, 10s)
        .then(
            [this] {
              say("flushed");
              compat::mail(self_, tick{}).delay(5ms).send(script_actor{self_});
            },
            [this](const caf::error&) { say("unexpected"); });
    compat::mail(self_, release{}).send(worker_);
  }

  void timed_out_flush() {
    compat::mail(self_, flush{})
        .request(worker_, 5ms)
        .then([this] { say("unexpected"); },
              [this](const caf::error& err) {
                say(compat::is_timeout(err) && !compat::is_down(err) ? "timeout" : "unexpected");
                monitors_.remove(other_);
                flush_badly();
              });
  }

  void flush_badly() {
    compat::mail(self_, flush{{{99}}})
        .request(other_, 10s)
        .then([this] { say("unexpected"); },
              [this](const caf::error& err) {
                say(compat::is_down(err) ? "threw" : "unexpected");
                compat::mail(self_, crash{}).send(worker_);
              });
  }

  void worker_down(const caf::error& reason) {
    say("down " + std::string{reason == caf::sec::runtime_error ? "runtime error " : "unexpected "} +
        compat::context_of<std::string>(reason));
    compat::mail(self_, start{{1}})
        .request(worker_, 10s)
        .then([this](const started&) { say("unexpected"); },
              [this](const caf::error& err) {
                say(compat::is_down(err) && !compat::is_timeout(err) ? "is down" : "unexpected");
                compat::send_exit(script_actor{self_}, caf::make_error(caf::exit_reason::kill));
              });
  }

  script_actor::pointer self_;
  worker_actor worker_;
  worker_actor other_;
  std::unique_ptr<script_log*> log_;
  compat::monitors monitors_;
};

TEST(caf_compat_threads, one_run_over_every_feature) {
  script_log log;
  {
    compat::init_types<caf::id_block::sluice_compat_test>();
    caf::actor_system_config cfg;
    compat::register_types<caf::id_block::sluice_compat_test>(cfg);
    compat::register_error_codes<fault>(cfg);
    compat::configure_scheduler(cfg, 1);
    caf::actor_system system{cfg};
    auto worker = compat::spawn<worker_actor, worker_state>(system, std::make_unique<int>(100));
    auto other = compat::spawn<worker_actor, worker_state>(system, std::make_unique<int>(200));
    auto script = compat::spawn<script_actor, script_state>(system, worker, other, std::make_unique<script_log*>(&log));
    std::thread{[&] { compat::anon_mail(start{{5}}).send(script); }}.join();
    worker = nullptr;
    other = nullptr;
    system.await_all_actors_done();  // `script` is held: CAF ends an actor that nobody refers to
  }
  EXPECT_EQ(log.lines, (std::vector<std::string>{"anonymous", "started 105", "error lost 2 0", "flushed", "timeout",
                                                 "threw", "down runtime error crashed on purpose", "is down"}));
}

TEST(caf_compat_ids, block_begins_at_the_documented_offset) {
  EXPECT_EQ(SLUICE_FIRST_TYPE_ID, 1200);
  EXPECT_EQ(caf::id_block::sluice_compat_test::begin, SLUICE_FIRST_TYPE_ID + 9000);
  EXPECT_EQ(caf::type_id<wide>::value, SLUICE_FIRST_TYPE_ID + 9002);
}

template <class Bytes, class Sink, class Source>
void round_trip(const wide& original) {
  compat::init_types<caf::id_block::sluice_compat_test>();
  caf::actor_system_config cfg;
  compat::register_types<caf::id_block::sluice_compat_test>(cfg);
  compat::configure_scheduler(cfg, 1);
  caf::actor_system system{cfg};
  Bytes bytes;
  Sink sink{system, bytes};
  auto source_value = original;
  auto copy = make_wide();
  copy.maybe_part = part{};
#if SLUICE_CAF_1
  ASSERT_TRUE(sink.apply(source_value));
  Source source{system, bytes};
  ASSERT_TRUE(source.apply(copy));
#else
  ASSERT_FALSE(sink(source_value));
  Source source{system, bytes};
  ASSERT_FALSE(source(copy));
#endif
  EXPECT_EQ(copy, original);
}

TEST(caf_compat_inspect, every_field_type_survives_serialization) {
#if SLUICE_CAF_1
  using bytes = caf::byte_buffer;
#else
  using bytes = std::vector<char>;
#endif
  round_trip<bytes, caf::binary_serializer, caf::binary_deserializer>(make_wide());
  round_trip<bytes, caf::binary_serializer, caf::binary_deserializer>(wide{});
}

}  // namespace
}  // namespace compat_test
}  // namespace sluice::inline v0
