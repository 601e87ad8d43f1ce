// SPDX-License-Identifier: Apache-2.0
//
// The fields of a message, without asking the message: what a test needs to notice a field that is not serialised.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sluice/messages/messages.hpp>

namespace sluice::unit {

struct any_field {
  template <class T>
  operator T() const;  // never defined
};

template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{((void)I, any_field{})...}; };
}

template <class T, std::size_t Max = 12>
constexpr std::size_t num_fields() {
  if constexpr (Max == 0)
    return 0;
  else if constexpr (takes<T>(std::make_index_sequence<Max>{}))
    return Max;
  else
    return num_fields<T, Max - 1>();
}

template <class T>
auto fields(const T& x) {
  constexpr auto count = num_fields<T>();
  static_assert(count <= 10);
  if constexpr (count == 0) {
    return std::tie();
  } else if constexpr (count == 1) {
    const auto& [a] = x;
    return std::tie(a);
  } else if constexpr (count == 2) {
    const auto& [a, b] = x;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    const auto& [a, b, c] = x;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    const auto& [a, b, c, d] = x;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    const auto& [a, b, c, d, e] = x;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    const auto& [a, b, c, d, e, f] = x;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    const auto& [a, b, c, d, e, f, g] = x;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    const auto& [a, b, c, d, e, f, g, h] = x;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    const auto& [a, b, c, d, e, f, g, h, i] = x;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else {
    const auto& [a, b, c, d, e, f, g, h, i, j] = x;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  }
}

template <class T>
concept has_fields = std::is_aggregate_v<T> && !requires(const T& x) {
  x == x;
};

/// Equal in every field, at every depth.
template <class T>
bool same(const T& x, const T& y);

template <class T>
bool same_list(const std::vector<T>& x, const std::vector<T>& y) {
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!same(x[i], y[i])) return false;
  return true;
}

inline constexpr std::size_t num_totals = sizeof(engine_totals) / sizeof(std::uint64_t);
using totals_array = std::array<std::uint64_t, num_totals>;

template <class T>
struct is_list : std::false_type {};
template <class T>
struct is_list<std::vector<T>> : std::true_type {};

template <class T>
bool same(const T& x, const T& y) {
  if constexpr (std::is_same_v<T, engine_totals>) {
    return std::bit_cast<totals_array>(x) == std::bit_cast<totals_array>(y);
  } else if constexpr (is_list<T>::value) {
    return same_list(x, y);
  } else if constexpr (has_fields<T>) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] const auto a = fields(x), b = fields(y);
      return (same(std::get<I>(a), std::get<I>(b)) && ...);
    }
    (std::make_index_sequence<num_fields<T>()>{});
  } else {
    return x == y;
  }
}

/// How many fields, not counting those of fields, still have their default value.
template <class T>
std::size_t num_default_fields(const T& x) {
  const T untouched{};
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    [[maybe_unused]] const auto a = fields(x), b = fields(untouched);
    return (std::size_t{0} + ... + std::size_t{same(std::get<I>(a), std::get<I>(b))});
  }
  (std::make_index_sequence<num_fields<T>()>{});
}

}  // namespace sluice::unit
