// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sluice/runtime/runtime.hpp>

#include "http/api_error.hpp"

namespace sluice::serve {

/// The answer to a request that the runtime did not accept or did not finish: 400 for what the client can
/// change, 503 for what passes, 500 with an id for a fault.
http::api_error to_api_error(const error& failure);

}  // namespace sluice::serve
