// SPDX-License-Identifier: Apache-2.0
//
// Every option of sluice-serve, one entry each. Private to the command line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "serve/options.hpp"

namespace sluice::serve {

/// A named value. `read` returns false, and changes nothing, for a value that is not allowed.
struct value_option {
  std::string name;   ///< with the two dashes
  std::string group;  ///< heading in --help
  std::string meaning;
  std::string allowed;
  std::function<bool(const std::string& text, server_options& into)> read;
  std::function<std::string(const server_options& from)> show;  ///< the value, also the default in --help
};

/// A switch with a `--no-` form.
struct switch_option {
  std::string name;  ///< without dashes
  std::string group;
  std::string meaning;
  std::function<bool&(server_options& of)> value;
};

const std::vector<value_option>& value_options();
const std::vector<switch_option>& switch_options();

/// A decimal integer in [least, most]; nothing else may stand in `text`.
std::optional<std::uint64_t> parse_integer(const std::string& text, std::uint64_t least, std::uint64_t most);

/// A finite decimal number in [least, most].
std::optional<double> parse_number(const std::string& text, double least, double most);

}  // namespace sluice::serve
