// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sluice/runtime/runtime.hpp>

#include "http/json.hpp"

namespace sluice::serve {

/// {"success", "caches": {name: {"reset", "dropped": {"blocks" or "chunks", "bytes"}, "held_by": {"loads": [ids],
/// "running_requests"}, "stores_in_flight"}}}. The device counts blocks, tiers count chunks.
http::json to_json(const reset_report& report);

/// The fields of engine_snapshot under their own names.
http::json to_json(const engine_snapshot& state);

}  // namespace sluice::serve
