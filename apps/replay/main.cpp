// SPDX-License-Identifier: Apache-2.0
//
// sluice-replay: replays the scenarios against a server, over HTTP. Exit code 0 when all that
// must hold held, 1 with the reason when something differs, 2 for bad options.
#include <csignal>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>

#include "replay/errors.hpp"
#include "replay/options.hpp"
#include "replay/server_process.hpp"

namespace {

using namespace sluice::replay;
using namespace std::chrono_literals;

constexpr auto start_timeout = 60s;
constexpr auto stop_timeout = 60s;

void run_against(const endpoint& server, const scenario& story, const options& given, report& out) {
  const engine_client engine(http_client(server, given.request_timeout));
  scenario_context context{engine, out, given.seed};
  story.run(context);
}

/// One server for the scenario, with the options it needs, from start to a clean end.
void run_with_own_server(const scenario& story, scheduling how, const options& given, report& out) {
  std::vector<std::string> server_options(story.server_options.begin(), story.server_options.end());
  server_options.emplace_back(server_option(how));
  server_process server(given.server_binary, server_options, given.echoes_server_output);
  try {
    const std::string url = server.wait_for_url(start_timeout);
    out.progress(story.name, "server at " + url);
    run_against(parse_url(url), story, given, out);
    server.stop(stop_timeout);
  } catch (const std::exception&) {
    std::cerr << "the last output of the server:\n" << server.last_output();
    throw;
  }
}

void judge(const scenario& story, report& out, const std::function<void()>& run_story) {
  try {
    run_story();
    out.pass(story.name);
  } catch (const std::exception& error) {
    out.fail(story.name, error.what());
  }
}

int run(const options& given) {
  report out(std::cout);
  std::cout << "sluice-replay: " << describe(given) << std::endl;
  for (const scenario& story : given.scenarios) {
    if (given.url) {
      judge(story, out, [&] { run_against(*given.url, story, given, out); });
      continue;
    }
    for (const scheduling how : given.schedulings) {
      out.set_scheduling(name(how));
      judge(story, out, [&] { run_with_own_server(story, how, given, out); });
    }
  }
  out.print_summary();
  return out.has_failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const auto parsed = parse_options(argc, argv);
  if (const auto* end = std::get_if<exit_now>(&parsed)) return end->code;
  return run(std::get<options>(parsed));
}
