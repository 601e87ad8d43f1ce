// SPDX-License-Identifier: Apache-2.0
//
// The answers to control commands. Each throws http::api_error for an outcome that is not a 200: 409 for a command
// that another one cancelled or that a cache refused, 503 for an engine that is gone, 500 for a fault.
#pragma once

#include "http/json.hpp"
#include "serve/service.hpp"

namespace sluice::serve {

/// {"status": "paused"}; with "caches" when one of them could not be cleared. A pause that timed out is
/// {"status": "pausing", "caches"}: nobody is admitted, and what holds the caches is named.
http::json pause_body(const service& api, const control_report& report);

/// {"status": "resumed"}
http::json resume_body(const service& api, const control_report& report);

/// {"status": "sleeping"}, or as for a pause that timed out. 409 names the cache that could not be reset.
http::json sleep_body(const service& api, const control_report& report);

/// {"status": "awake"}, or "sleeping" while some memory is still given back.
http::json wake_body(const service& api, const control_report& report);

}  // namespace sluice::serve
