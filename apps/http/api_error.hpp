// SPDX-License-Identifier: Apache-2.0
//
// The one error form of the API: {"error": {"message", "type", "param", "code"}}.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "http/json.hpp"
#include "http/message.hpp"

namespace sluice::http {

/// An answer other than 200, thrown by whatever cannot go on with a request.
struct api_error : std::exception {
  api_error(int http_status, std::string text, std::string error_code = {}, std::string parameter = {})
      : status{http_status}, message{std::move(text)}, code{std::move(error_code)}, param{std::move(parameter)} {}

  const char* what() const noexcept override { return message.c_str(); }

  int status;
  std::string message;
  std::string code;   ///< machine readable; null in the answer when empty
  std::string param;  ///< the field or parameter at fault; null in the answer when empty
};

/// 400: says which field, what was given and what is allowed.
api_error invalid_value(const std::string& param, const std::string& given, const std::string& allowed);

/// 500 with an id that also stands in the log beside `cause`.
api_error internal_fault(std::string_view cause);

/// The body of an answer, also usable as an event of a stream.
json to_json(const api_error& failure);

/// 503 answers get `Retry-After`.
response to_response(const api_error& failure);

}  // namespace sluice::http
