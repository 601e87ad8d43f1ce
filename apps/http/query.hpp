// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::http {

/// The decoded parameters of a query string.
class query_params {
 public:
  /// Throws api_error (400) for bad percent-encoding, a name not in `allowed` and one given twice that is not in
  /// `repeatable` too.
  static query_params parse(std::string_view query, const std::vector<std::string>& allowed,
                            const std::vector<std::string>& repeatable = {});

  /// true, false, 1 or 0; `fallback` when the parameter is absent. Throws api_error (400) for anything else.
  bool flag(std::string_view name, bool fallback) const;

  /// One of `allowed`; the first when the parameter is absent. Throws api_error (400) for anything else.
  std::string choice(std::string_view name, const std::vector<std::string>& allowed) const;

  /// A decimal integer in [least, most]; `fallback` when the parameter is absent. Throws api_error (400) for anything
  /// else.
  std::uint64_t integer(std::string_view name, std::uint64_t least, std::uint64_t most, std::uint64_t fallback) const;

  /// Values of `allowed`, comma separated or in repeated parameters; empty when the parameter is absent. Throws
  /// api_error (400) for anything else.
  std::vector<std::string> choices(std::string_view name, const std::vector<std::string>& allowed) const;

 private:
  const std::string* find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> params_;
};

}  // namespace sluice::http
