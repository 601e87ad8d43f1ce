// SPDX-License-Identifier: Apache-2.0
#include "http/unique_id.hpp"

#include <cstdint>
#include <random>

namespace sluice::http {

std::string unique_id(std::string_view prefix) {
  thread_local std::mt19937_64 engine = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64{seed};
  }();
  constexpr std::string_view digits = "0123456789abcdef";
  std::string id{prefix};
  for (int word = 0; word < 2; ++word) {
    auto bits = engine();
    for (int i = 0; i < 16; ++i, bits >>= 4) id += digits[bits & 15];
  }
  return id;
}

}  // namespace sluice::http
