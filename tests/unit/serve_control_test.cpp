// SPDX-License-Identifier: Apache-2.0
//
// Pause, sleep and their opposites, and what a reset is told, over HTTP.
#include "support/serve_fixture.hpp"

namespace sluice::testing {
namespace {

using nlohmann::json;
using strings = std::vector<std::string>;

class serve_control : public serve_fixture {
 protected:
  void SetUp() override { start(); }

  bool is_paused() { return ask(get("/is_paused")).json().at("is_paused").get<bool>(); }
  bool is_sleeping() { return ask(get("/is_sleeping")).json().at("is_sleeping").get<bool>(); }

  void expect_status(const std::string& target, const std::string& status) {
    const auto answer = ask(post(target, ""));
    EXPECT_EQ(answer.status, 200) << target << ": " << answer.body;
    EXPECT_EQ(answer.json().at("status"), status) << target;
  }

  void expect_error(const std::string& target, int status, const json& param, const std::string& mention) {
    const auto answer = ask(post(target, ""));
    EXPECT_EQ(answer.status, status) << target;
    EXPECT_EQ(answer.json()["error"]["param"], param) << target;
    EXPECT_NE(answer.json()["error"]["message"].get<std::string>().find(mention), std::string::npos) << answer.body;
  }
};

// Scenario O130: the mode reaches the engine, what it ended has ended when the call returns, and a request sent while
// paused is accepted and waits. That the engine admits nobody is its own tests' business.
TEST_F(serve_control, o130_running_and_new_requests) {
  const std::string ask_stream = R"({"prompt":"a","max_tokens":100,"stream":true})";
  const std::string ask_new = R"({"prompt":"b","max_tokens":4})";
  for (const auto* mode : {"abort", "wait", "keep"}) {
    loopback_client running{port};
    running.send(post("/v1/completions", ask_stream));
    const auto old = engine.next_submission();
    running.read_until("\r\n\r\n");
    expect_status("/pause?mode=" + std::string{mode}, "paused");
    if (mode == std::string{"abort"}) {
      EXPECT_NE(running.read_until("[DONE]").find(R"("finish_reason":"abort")"), std::string::npos);
    } else {
      EXPECT_FALSE(running.has_input(20)) << mode;
    }
    loopback_client late{port};
    late.send(post("/v1/completions", ask_new));
    const auto fresh = engine.next_submission();
    EXPECT_FALSE(late.has_input(300)) << mode;
    expect_status("/resume", "resumed");
    fresh.finish(finish_reason::length);
    EXPECT_EQ(late.read_answer().json()["choices"][0]["finish_reason"], "length");
    if (mode != std::string{"abort"}) {
      old.finish(finish_reason::length);
      EXPECT_NE(running.read_until("[DONE]").find(R"("finish_reason":"length")"), std::string::npos) << mode;
    }
  }
  EXPECT_EQ(engine.commands(), (strings{"pause abort device tiers 60000", "resume", "pause wait device tiers 60000",
                                        "resume", "pause keep device tiers 60000", "resume"}));
}

// Scenario O131, HTTP part.
TEST_F(serve_control, o131_sleep_that_is_refused_names_the_connector_cache) {
  engine.control = {control_outcome::refused, {{"device", true, 0, 0, {}, 0, 0, false},
                                               {"host", false, 0, 0, {}, 0, 0, true}}, ""};
  const auto answer = ask(post("/sleep?level=1&mode=keep", ""));
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.json()["error"]["code"], "cache_not_reset");
  EXPECT_EQ(answer.json()["error"]["message"],
            "sleep is refused: the connector cache host cannot be reset; no memory was given back");
  EXPECT_EQ(engine.commands(), strings{"sleep 1 keep tiers"});
  EXPECT_FALSE(is_sleeping());
  engine.control.caches = {{"host", false, 0, 0, {transfer_id{3}, transfer_id{4}}, 2, 0, false}};
  expect_error("/sleep", 409, nullptr, "cache host could not be reset, held by loads 3, 4, held by 2 running requests;");
}

// Guards: what was refused must not look as if it had been done.
TEST_F(serve_control, a_refused_command_is_409_with_the_reason) {
  engine.control = {control_outcome::refused, {}, "the engine sleeps; it must be woken up"};
  expect_error("/resume", 409, nullptr, "the resume is refused: the engine sleeps; it must be woken up");
  engine.control.message = "the engine is giving memory back or taking it";
  expect_error("/pause", 409, nullptr, "the pause is refused: the engine is giving");
  expect_error("/wake_up", 409, nullptr, "the wake-up is refused: the engine is giving");
}

// Scenario O132.
TEST_F(serve_control, o132_reset_forwards_its_flags_and_reports_the_outcome) {
  struct call {
    const char* query;
    bool running, external, success;
  };
  for (const auto& [query, running, external, success] :
       {call{"", false, false, true}, call{"?reset_running_requests=true", true, false, true},
        call{"?reset_external=true", false, true, true},
        call{"?reset_running_requests=true&reset_external=true", true, true, false}}) {
    engine.report.success = success;
    const auto answer = ask(post("/reset_prefix_cache" + std::string{query}, ""));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.json()["success"], success) << query;
    EXPECT_EQ(engine.last_reset().reset_running_requests, running) << query;
    EXPECT_EQ(engine.last_reset().reset_external, external) << query;
    EXPECT_TRUE(engine.last_reset().reset_device) << query;
    EXPECT_EQ(engine.last_reset().wait.count(), 0) << query;
  }
}

TEST_F(serve_control, a_reset_can_wait_for_loads) {
  EXPECT_EQ(ask(post("/reset_prefix_cache?wait_ms=1500", "")).status, 200);
  EXPECT_EQ(engine.last_reset().wait.count(), 1500);
  expect_error("/reset_prefix_cache?wait_ms=600001", 400, "wait_ms", R"(got "600001", allowed: an integer from 0 to)");
  expect_error("/reset_prefix_cache?wait_ms=-1", 400, "wait_ms", R"(got "-1")");
  expect_error("/reset_prefix_cache?wait_ms=", 400, "wait_ms", R"(got "")");
}

TEST_F(serve_control, the_connector_cache_alone) {
  engine.report.success = true;
  EXPECT_EQ(ask(post("/reset_connector_cache", "")).json(), (json{{"success", true}}));
  EXPECT_FALSE(engine.last_reset().reset_device);
  EXPECT_TRUE(engine.last_reset().reset_external);
}

// Scenario O134.
TEST_F(serve_control, o134_pause_is_idempotent_in_every_mode) {
  for (int round = 0; round < 2; ++round) {
    for (const auto* mode : {"abort", "wait", "keep"}) {
      for (int i = 0; i < 2; ++i) expect_status("/pause?mode=" + std::string{mode}, "paused");
      EXPECT_TRUE(is_paused()) << mode;
      for (int i = 0; i < 2; ++i) expect_status("/resume", "resumed");
      EXPECT_FALSE(is_paused()) << mode;
    }
  }
}

// Scenario O135.
TEST_F(serve_control, o135_an_invalid_mode_changes_nothing) {
  for (const bool is_paused_before : {false, true}) {
    if (is_paused_before) expect_status("/pause", "paused");
    const auto num_commands = engine.commands().size();
    expect_error("/pause?mode=invalid", 400, "mode", R"(got "invalid", allowed: abort, wait, keep)");
    expect_error("/sleep?mode=", 400, "mode", R"(got "")");
    EXPECT_EQ(is_paused(), is_paused_before);
    EXPECT_EQ(engine.commands().size(), num_commands);
  }
}

TEST_F(serve_control, every_parameter_reaches_the_engine) {
  expect_status("/pause?mode=keep&clear_cache=false&clear_connector_cache=0&timeout_ms=250", "paused");
  expect_status("/sleep?level=2&mode=wait&clear_connector_cache=false", "sleeping");
  expect_status("/wake_up?tags=weights", "sleeping");
  expect_status("/wake_up?tags=weights,kv_cache", "awake");
  expect_status("/wake_up?tags=kv_cache&tags=weights", "awake");
  expect_status("/wake_up", "awake");
  EXPECT_EQ(engine.commands(), (strings{"pause keep 250", "sleep 2 wait", "wake weights", "wake weights kv_cache",
                                        "wake weights kv_cache", "wake weights kv_cache"}));
}

TEST_F(serve_control, bad_parameters_are_named) {
  expect_error("/sleep?level=3", 400, "level", R"(got "3", allowed: an integer from 1 to 2)");
  expect_error("/pause?timeout_ms=1.5", 400, "timeout_ms", R"(got "1.5")");
  expect_error("/pause?clear_cache=maybe", 400, "clear_cache", R"(got "maybe")");
  expect_error("/pause?mode=abort&mode=keep", 400, "mode", "twice");
  expect_error("/wake_up?tags=weights,scales", 400, "tags", R"(got "scales", allowed: weights, kv_cache)");
  expect_error("/wake_up?tags=", 400, "tags", R"(got "")");
  EXPECT_TRUE(engine.commands().empty());
}

// Guards: an outcome that is not what was asked for does not look like it.
TEST_F(serve_control, outcomes_other_than_done) {
  engine.control = {control_outcome::timed_out, {{"device", false, 0, 0, {transfer_id{7}}, 0, 0, false}}, ""};
  const auto late = ask(post("/pause", ""));
  EXPECT_EQ(late.status, 200);
  EXPECT_EQ(late.json()["status"], "pausing");
  EXPECT_EQ(late.json()["caches"]["device"]["held_by"]["loads"], json::parse("[7]"));
  engine.control = {control_outcome::refused, {{"host", false, 0, 0, {}, 0, 0, true}}, ""};
  const auto refused = ask(post("/pause", ""));
  EXPECT_EQ(refused.status, 200);
  EXPECT_EQ(refused.json()["status"], "paused");
  EXPECT_EQ(refused.json()["caches"]["host"]["unsupported"], true);
  engine.control = {control_outcome::cancelled, {}, ""};
  expect_error("/pause", 409, nullptr, "the pause was cancelled");
  engine.control = {control_outcome::failed, {}, "the weights are gone"};
  EXPECT_EQ(ask(post("/wake_up", "")).status, 500);
  engine.fail({errc::engine_failed, "the scheduler died"});
  expect_error("/wake_up", 503, nullptr, "the weights are gone");
}

// Guards: a paused engine is alive, so that nobody restarts it, but gets no new work.
TEST_F(serve_control, a_paused_engine_is_healthy_and_not_ready) {
  expect_status("/pause", "paused");
  EXPECT_EQ(ask(get("/health")).status, 200);
  EXPECT_EQ(ask(get("/ready")).status, 503);
  EXPECT_EQ(ask(get("/ready")).json()["error"]["code"], "paused");
  expect_status("/sleep", "sleeping");
  EXPECT_EQ(ask(get("/health")).status, 200);
  EXPECT_EQ(ask(get("/ready")).json()["error"]["code"], "sleeping");
  EXPECT_TRUE(is_paused());
  EXPECT_TRUE(is_sleeping());
  expect_status("/wake_up", "awake");
  EXPECT_EQ(ask(get("/ready")).status, 200);
}

}  // namespace
}  // namespace sluice::testing
