// SPDX-License-Identifier: Apache-2.0
#include "serve/options.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include <sluice/version.hpp>

#include "serve/option_table.hpp"

namespace sluice::serve {
namespace {

/// One line for exit code 2.
struct bad_option {
  std::string line;
};

std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return "'" + safe + "'";
}

[[noreturn]] void refuse(const std::string& name, const std::string& got, const std::string& allowed) {
  throw bad_option{"sluice-serve: option " + name + ": got " + got + ", allowed: " + allowed};
}

bool has_other_form(const std::string& name, const std::vector<std::string>& seen) {
  for (const auto& entry : switch_options()) {
    const auto other = name == "--" + entry.name ? "--no-" + entry.name : "--" + entry.name;
    const bool is_this = name == "--" + entry.name || name == "--no-" + entry.name;
    if (is_this && std::find(seen.begin(), seen.end(), other) != seen.end()) return true;
  }
  return false;
}

bool is_switch(const std::string& name) {
  for (const auto& entry : switch_options()) {
    if (name == "--" + entry.name || name == "--no-" + entry.name) return true;
  }
  return false;
}

const value_option* find_value(const std::string& name) {
  for (const auto& entry : value_options()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

// The library's own messages differ from case to case, so shape and names are checked before it parses.
void check_shape(int argc, const char* const* argv) {
  std::vector<std::string> seen;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto name = word.substr(0, word.find('='));
    if (name == "--help" || name == "-h" || name == "--version") return;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) refuse(name, "it more than once", "once");
    if (has_other_form(name, seen)) refuse(name, "both forms", "one of the two");
    seen.push_back(name);
    const auto* entry = find_value(name);
    if (entry == nullptr && !is_switch(name)) refuse(quoted(word), "an unknown option", "those that --help lists");
    if (entry == nullptr && name != word) refuse(name, quoted(word.substr(name.size() + 1)), "no value");
    if (entry != nullptr && word == name + "=") refuse(name, "''", entry->allowed);
    if (entry == nullptr || name != word) continue;
    if (i + 1 == argc || find_value(argv[i + 1]) != nullptr || is_switch(argv[i + 1])) {
      refuse(name, "no value", entry->allowed);
    }
    if (*argv[i + 1] == '\0') refuse(name, "''", entry->allowed);
    ++i;
  }
}

std::vector<std::string> joined_words(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (find_value(word) != nullptr && i + 1 < argc) word += std::string{"="} + argv[++i];
    words.push_back(word);
  }
  return {words.rbegin(), words.rend()};  // the library wants them last first
}

void declare(CLI::App& app, server_options& options) {
  app.set_version_flag("--version", "sluice-serve " SLUICE_VERSION);
  for (const auto& entry : value_options()) {
    const auto read = [&entry, &options](const std::string& text) {
      if (!entry.read(text, options)) refuse(entry.name, quoted(text), entry.allowed);
    };
    auto* option = app.add_option_function<std::string>(entry.name, read, entry.meaning + "; " + entry.allowed);
    option->group(entry.group)->type_name("")->default_str(entry.show(options));
  }
  for (const auto& entry : switch_options()) {
    auto& value = entry.value(options);
    app.add_flag("--" + entry.name + ",!--no-" + entry.name, value, entry.meaning + (value ? " (default on)" : " (default off)"))
        ->group(entry.group);
  }
}

}  // namespace

std::variant<server_options, early_exit> parse_options(int argc, const char* const* argv) {
  server_options options;
  CLI::App app{"Serves a language model over the OpenAI API, with KV offloading.", "sluice-serve"};
  try {
    declare(app, options);
    check_shape(argc, argv);
    app.parse(joined_words(argc, argv));
  } catch (const CLI::CallForHelp&) {
    return early_exit{0, app.help()};
  } catch (const CLI::CallForVersion&) {
    return early_exit{0, app.version() + "\n"};
  } catch (const CLI::ParseError& failure) {
    return early_exit{2, std::string{"sluice-serve: "} + failure.what() + "\n"};
  } catch (const bad_option& failure) {
    return early_exit{2, failure.line + "\n"};
  }
  return options;
}

std::string describe(const server_options& options) {
  std::string text;
  for (const auto& entry : value_options()) text += "  " + entry.name.substr(2) + " = " + entry.show(options) + "\n";
  auto copy = options;
  for (const auto& entry : switch_options()) {
    text += "  " + entry.name + " = " + (entry.value(copy) ? "true" : "false") + "\n";
  }
  return text;
}

std::string in_option_names(std::string complaint) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"num_device_blocks ", "--num-gpu-blocks-override "},
      {"device_memory_fraction ", "--gpu-memory-utilization "},
      {"host_tier_bytes ", "--kv-offloading-size in bytes "},
      {"eviction_policy ", "--eviction-policy "},
      {"max_model_len ", "--max-model-len "},
      {"max_num_seqs ", "--max-num-seqs "},
      {"max_num_batched_tokens ", "--max-num-batched-tokens "},
  };
  for (const auto& [field, option] : names) {
    if (complaint.starts_with(field)) complaint.replace(0, field.size(), option);
  }
  return complaint;
}

}  // namespace sluice::serve
