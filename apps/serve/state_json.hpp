// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <sluice/runtime/runtime.hpp>

#include "http/json.hpp"

namespace sluice::serve {

/// {"success", "caches": {name: {"reset", "dropped": {"blocks" or "chunks", "bytes"}, "held_by": {"loads": [ids],
/// "running_requests"}, "stores_in_flight"}}}, with "unsupported" for a cache that cannot be reset at all. The device counts blocks, tiers count chunks.
http::json to_json(const reset_report& report);

/// The part under "caches".
http::json to_json(const std::vector<cache_reset_report>& caches);

/// The fields of engine_snapshot under their own names.
http::json to_json(const engine_snapshot& state);

}  // namespace sluice::serve
