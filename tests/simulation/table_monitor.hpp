// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <support/test_engine.hpp>

namespace sluice::simulation {

/// Looks at the block tables of each step as they wait in the executor's mailbox: blocks that a window has passed go by
/// whole chunks, for a chunk of which a block is gone can never be stored.
class table_monitor {
 public:
  explicit table_monitor(testing::test_engine& engine) : engine_(engine) {}

  void look() {
    if (const auto step = engine_.system.peek<execute_step>(engine_.executor))
      for (const auto& entry : step->batch.entries) note(entry);
  }

  std::vector<std::string> take_faults() { return std::exchange(faults_, {}); }

 private:
  struct seen_tables {
    attempt_id attempt;
    std::vector<std::uint32_t> num_passed;  // by group
  };

  void note(const batch_entry& entry) {
    std::vector<std::uint32_t> num_passed;
    for (const auto& table : entry.block_tables) {
      std::uint32_t count = 0;
      while (count < table.size() && table[count] == null_block) ++count;
      num_passed.push_back(count);
    }
    auto& seen = tables_[entry.request];
    if (seen.attempt == entry.attempt)
      for (std::size_t g = 0; g < seen.num_passed.size(); ++g)
        if (num_passed[g] > seen.num_passed[g] && num_passed[g] % engine_.options.blocks_per_chunk != 0)
          faults_.push_back("request " + std::to_string(entry.request.value) + " gave up " +
                            std::to_string(num_passed[g]) + " blocks, part of a chunk among them");
    seen = {entry.attempt, std::move(num_passed)};
  }

  testing::test_engine& engine_;
  std::map<request_id, seen_tables> tables_;
  std::vector<std::string> faults_;
};

}  // namespace sluice::simulation
