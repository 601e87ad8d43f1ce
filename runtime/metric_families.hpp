// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

#include <sluice/messages/types.hpp>

namespace sluice::inline v0 {

/// Every counter and gauge of the serving contract that the engine feeds. All series exist from the start.
std::vector<prometheus::MetricFamily> make_metric_families(const engine_numbers& numbers);

}  // namespace sluice::inline v0
