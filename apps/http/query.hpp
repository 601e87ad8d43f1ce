// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::http {

/// The decoded parameters of a query string.
class query_params {
 public:
  /// Throws api_error (400) for bad percent-encoding, a name given twice and a name not in `allowed`.
  static query_params parse(std::string_view query, const std::vector<std::string>& allowed);

  /// true, false, 1 or 0; `fallback` when the parameter is absent. Throws api_error (400) for anything else.
  bool flag(std::string_view name, bool fallback) const;

 private:
  const std::string* find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> params_;
};

}  // namespace sluice::http
