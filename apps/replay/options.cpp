// SPDX-License-Identifier: Apache-2.0
#include "replay/options.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include <CLI/CLI.hpp>

#include <sluice/version.hpp>

#include "replay/errors.hpp"

namespace sluice::replay {

namespace {

/// What the command line says, before it is resolved.
struct raw_options {
  std::vector<std::string> names;
  std::string url;
  std::string server;
  std::string scheduling = "both";
  std::uint64_t request_timeout_s = 60;
};

std::string default_server_binary() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "sluice-serve" : (self.parent_path() / "sluice-serve").string();
}

std::vector<scenario> choose(const std::vector<std::string>& names) {
  std::vector<scenario> chosen;
  for (const scenario& one : all_scenarios()) {
    const bool is_wanted =
        std::ranges::any_of(names, [&](const auto& name) { return name == "all" || name == one.name; });
    if (is_wanted) chosen.push_back(one);
  }
  return chosen;
}

void declare(CLI::App& app, raw_options& raw, options& resolved) {
  app.set_version_flag("--version", std::string("sluice-replay " SLUICE_VERSION));
  app.set_config("--config", "", "Read options from a TOML file with the same names");
  std::vector<std::string> names{"all"};
  std::string listed;
  for (const scenario& one : all_scenarios()) {
    names.emplace_back(one.name);
    listed.append(one.name).append(", ");
  }
  app.add_option("scenario", raw.names, listed + "or all (the default)")->check(CLI::IsMember(names));
  auto* url = app.add_option("--url", raw.url, "Replay against this server, http://HOST:PORT, instead of starting one");
  app.add_option("--server", raw.server, "The sluice-serve to start (default: the one beside this binary)")
      ->excludes(url);
  app.add_option("--scheduling", raw.scheduling, "How the started server schedules: sync, async, or both in turn")
      ->check(CLI::IsMember({"sync", "async", "both"}))
      ->capture_default_str()
      ->excludes(url);
  app.add_option("--request-timeout", raw.request_timeout_s, "Seconds until a request counts as lost, 1 to 3600")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--seed", resolved.seed, "Of prompts and of the moments of resets")->capture_default_str();
  app.add_flag("--server-output", resolved.echoes_server_output, "Show what the started server prints");
}

std::vector<scheduling> choose_schedulings(const std::string& name) {
  if (name == "sync") return {scheduling::sync};
  if (name == "async") return {scheduling::async};
  return {scheduling::sync, scheduling::async};
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

std::variant<options, exit_now> parse_options(int argc, const char* const* argv) {
  CLI::App app("Replays stories of resets, preemption, loads and pauses over HTTP and compares every token.",
               "sluice-replay");
  raw_options raw;
  options resolved;
  declare(app, raw, resolved);
  try {
    app.parse(argc, argv);
    if (!raw.url.empty()) resolved.url = parse_url(raw.url);
  } catch (const CLI::Success& success) {
    return exit_now{app.exit(success)};
  } catch (const CLI::Error& error) {
    std::cerr << "sluice-replay: " << one_line(error.what()) << std::endl;
    return exit_now{2};
  } catch (const replay_error& error) {
    std::cerr << "sluice-replay: --url: " << error.what() << std::endl;
    return exit_now{2};
  }
  resolved.scenarios = choose(raw.names.empty() ? std::vector<std::string>{"all"} : raw.names);
  resolved.server_binary = raw.server.empty() ? default_server_binary() : raw.server;
  resolved.schedulings = choose_schedulings(raw.scheduling);
  resolved.request_timeout = std::chrono::seconds(raw.request_timeout_s);
  return resolved;
}

std::string_view name(scheduling how) {
  switch (how) {
    case scheduling::sync: return "sync";
    case scheduling::async: return "async";
  }
  return "?";
}

std::string_view server_option(scheduling how) {
  switch (how) {
    case scheduling::sync: return "--no-async-scheduling";
    case scheduling::async: return "--async-scheduling";
  }
  return {};
}

std::string describe(const options& resolved) {
  std::string text = "scenarios";
  for (const scenario& one : resolved.scenarios) text.append(" ").append(one.name);
  if (resolved.url) {
    text += ", server " + resolved.url->url();
  } else {
    text += ", server started from " + resolved.server_binary + ", scheduling";
    for (const scheduling how : resolved.schedulings) text.append(" ").append(name(how));
  }
  return text + ", request timeout " + std::to_string(resolved.request_timeout.count()) + " s, seed " +
         std::to_string(resolved.seed);
}

}  // namespace sluice::replay
