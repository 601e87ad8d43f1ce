// SPDX-License-Identifier: Apache-2.0
//
// Which function answers which method and path.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/exchange.hpp"
#include "http/query.hpp"

namespace sluice::http {

using exchange_ptr = std::shared_ptr<exchange>;

struct route {
  std::string method;               ///< GET answers HEAD too
  std::string path;                 ///< compared byte by byte
  std::vector<std::string> params;  ///< query parameters it knows; others are a 400
  bool takes_body = false;          ///< a body sent to another route is a 400
  /// May answer later. What it throws is answered: api_error as it says, anything else as 500 with an id.
  std::function<void(const exchange_ptr&, const query_params&)> run;
  std::vector<std::string> repeatable_params = {};  ///< those of `params` that may be given more than once
};

/// Errors: 404 unknown path, 405 with `Allow`, 400 unknown query parameter or unwanted body.
class router : public handler {
 public:
  void add(route entry) { routes_.push_back(std::move(entry)); }

  std::optional<response> refuse(const request& head) override;
  void handle(std::shared_ptr<exchange> call) override;
  response reject(int status, std::string_view message) override;

 private:
  const route* match(const request& asked) const;
  response no_route(const request& asked) const;
  static void run(const route& entry, const exchange_ptr& call);

  std::vector<route> routes_;
};

}  // namespace sluice::http
