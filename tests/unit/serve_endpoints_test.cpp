// SPDX-License-Identifier: Apache-2.0
//
// The endpoints beside completions, and what all endpoints share.
#include "support/serve_fixture.hpp"

namespace sluice::testing {
namespace {

using nlohmann::json;

class serve_endpoints : public serve_fixture {};

TEST_F(serve_endpoints, models_lists_the_served_one) {
  serve::service_options options;
  options.served_model_name = "mine";
  start({}, options);
  const auto model = ask(get("/v1/models")).json()["data"].at(0);
  EXPECT_EQ(model["id"], "mine");
  EXPECT_EQ(model["object"], "model");
  EXPECT_EQ(model["max_model_len"], 128);
  EXPECT_EQ(complete(R"({"model":"tiny","prompt":"a"})").status, 404) << "the model's own name is not the served one";
}

TEST_F(serve_endpoints, version_and_metrics) {
  start();
  EXPECT_EQ(ask(get("/version")).json(), (json{{"version", "0.1.0"}}));
  const auto metrics = ask(get("/metrics"));
  EXPECT_TRUE(metrics.has("Content-Type: text/plain; version=0.0.4"));
  EXPECT_EQ(metrics.body, engine.metrics());
}

TEST_F(serve_endpoints, health_follows_the_engine) {
  start();
  EXPECT_EQ(ask(get("/health")).json(), (json{{"status", "serving"}}));
  EXPECT_EQ(ask(get("/ready")).status, 200);
  engine.fail({errc::engine_failed, "the scheduler died"});
  for (const auto* path : {"/health", "/ready"}) {
    const auto answer = ask(get(path));
    EXPECT_EQ(answer.status, 503);
    EXPECT_NE(answer.body.find("the scheduler died"), std::string::npos);
  }
  engine.begin_drain();
  EXPECT_NE(ask(get("/health")).body.find("draining"), std::string::npos);
  EXPECT_EQ(complete(R"({"prompt":"a"})").status, 503);
}

TEST_F(serve_endpoints, reset_reports_each_named_cache) {
  start();
  engine.report.caches = {{"device", false, 0, 0, {transfer_id{7}, transfer_id{9}}, 2, 1},
                          {"host", true, 5, 4096, {}, 0, 3}};
  const auto answer = ask(post("/reset_prefix_cache?reset_running_requests=true&reset_external=1", ""));
  EXPECT_EQ(answer.status, 200) << "a reset that cannot be done now is no error";
  EXPECT_EQ(answer.json(), json::parse(R"({"success":false,"caches":{
      "device":{"reset":false,"dropped":{"blocks":0,"bytes":0},"held_by":{"loads":[7,9],"running_requests":2},"stores_in_flight":1},
      "host":{"reset":true,"dropped":{"chunks":5,"bytes":4096},"held_by":{"loads":[],"running_requests":0},"stores_in_flight":3}}})"));
  EXPECT_TRUE(engine.last_reset().reset_running_requests);
  EXPECT_TRUE(engine.last_reset().reset_external);
  EXPECT_EQ(ask(post("/reset_prefix_cache?reset_external=false", "")).status, 200);
  EXPECT_FALSE(engine.last_reset().reset_running_requests);
  EXPECT_FALSE(engine.last_reset().reset_external);
}

TEST_F(serve_endpoints, bad_queries_name_the_parameter) {
  start();
  const std::vector<std::array<std::string, 3>> table{
      {"/reset_prefix_cache?reset_external=yes", "reset_external", R"(got "yes", allowed: true, false, 1, 0)"},
      {"/reset_prefix_cache?reset_external=", "reset_external", R"(got "")"},
      {"/reset_prefix_cache?reset_extrnal=true", "reset_extrnal", "allowed: reset_running_requests, reset_external"},
      {"/reset_prefix_cache?reset_external=1&reset_external=0", "reset_external", "twice"},
      {"/reset_prefix_cache?reset_external=%2", "", "percent-encoding"},
      {"/v1/completions?x=1", "x", "allowed: none"},
  };
  for (const auto& [target, param, mention] : table) {
    const auto answer = ask(post(target, ""));
    EXPECT_EQ(answer.status, 400) << target;
    EXPECT_EQ(answer.json()["error"]["param"], param.empty() ? json{} : json(param)) << target;
    EXPECT_NE(answer.json()["error"]["message"].get<std::string>().find(mention), std::string::npos) << answer.body;
  }
  EXPECT_EQ(ask(post("/reset_prefix_cache?reset%5Fexternal=%74rue", "")).status, 200) << "percent-encoding is decoded";
}

TEST_F(serve_endpoints, unwanted_body) {
  start();
  const auto answer = ask(post("/reset_prefix_cache", R"({"reset_external":true})"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("takes no body"), std::string::npos);
}

TEST_F(serve_endpoints, an_engine_that_does_not_answer_is_a_503) {
  serve::service_options options;
  options.control_timeout = std::chrono::milliseconds{20};
  start({}, options);
  engine.answers_control = false;
  EXPECT_EQ(ask(post("/reset_prefix_cache", "")).status, 503);
  EXPECT_EQ(ask(get("/debug/state")).status, 503);
}

TEST_F(serve_endpoints, debug_state_is_the_snapshot) {
  start();
  engine.state_now.last_step = step_id{42};
  engine.state_now.control = control_state::pausing;
  engine.state_now.requests = {{request_id{3},
                                request_phase::loading,
                                waiting_reason::load_in_flight,
                                attempt_id{1},
                                20,
                                16,
                                2,
                                {transfer_id{5}},
                                0}};
  engine.state_now.transfers = {{transfer_id{5}, transfer_direction::load, request_id{3}, step_id{41}, 1, 1, false}};
  engine.state_now.blocks = {1, 2, 3, 4};
  engine.state_now.totals.boundary_excluded_loads = 6;
  const auto state = ask(get("/debug/state")).json();
  EXPECT_EQ(state["last_step"], 42);
  EXPECT_EQ(state["control"], "pausing");
  EXPECT_EQ(state["requests"][0]["phase"], "loading");
  EXPECT_EQ(state["requests"][0]["reason"], "load_in_flight");
  EXPECT_EQ(state["requests"][0]["loads"], json::parse("[5]"));
  EXPECT_EQ(state["transfers"][0]["direction"], "load");
  EXPECT_EQ(state["blocks"], json::parse(R"({"free":1,"cached":2,"held":3,"quarantined":4})"));
  EXPECT_EQ(state["totals"]["boundary_excluded_loads"], 6);
}

TEST_F(serve_endpoints, unknown_paths_and_methods) {
  start();
  const auto nowhere = ask(get("/v1/nowhere"));
  EXPECT_EQ(nowhere.status, 404);
  EXPECT_EQ(nowhere.json()["error"]["code"], "not_found");
  const auto wrong = ask(get("/v1/completions"));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_TRUE(wrong.has("Allow: POST"));
  EXPECT_TRUE(ask(post("/health", "")).has("Allow: GET, HEAD"));
}

TEST_F(serve_endpoints, head_has_no_body) {
  start();
  loopback_client client{port};
  client.send("HEAD /health HTTP/1.1\r\nHost: test\r\n\r\n" + get("/version"));
  EXPECT_TRUE(client.read_answer(false).has("Content-Length: 20"));
  EXPECT_EQ(client.read_answer().json()["version"], "0.1.0") << "the next answer follows at once";
}

}  // namespace
}  // namespace sluice::testing
