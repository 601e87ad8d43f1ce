// SPDX-License-Identifier: Apache-2.0
//
// Messages for CAF 0.17.6 and CAF 1.x: one field list, type ids, error code enums. Part of caf_compat.hpp.
#pragma once

#include <caf/all.hpp>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#if defined(CAF_VERSION_MAJOR) && CAF_VERSION_MAJOR >= 1
#define SLUICE_CAF_1 1
#else
#define SLUICE_CAF_1 0
#include <caf/meta/type_name.hpp>
#endif

// -- one field list for both shapes of inspect (at least 40 fields) --

#define SLUICE_PP_PARENS ()
#define SLUICE_PP_EXPAND(...) SLUICE_PP_E1(SLUICE_PP_E1(SLUICE_PP_E1(SLUICE_PP_E1(__VA_ARGS__))))
#define SLUICE_PP_E1(...) SLUICE_PP_E2(SLUICE_PP_E2(SLUICE_PP_E2(SLUICE_PP_E2(__VA_ARGS__))))
#define SLUICE_PP_E2(...) SLUICE_PP_E3(SLUICE_PP_E3(SLUICE_PP_E3(SLUICE_PP_E3(__VA_ARGS__))))
#define SLUICE_PP_E3(...) __VA_ARGS__
#define SLUICE_PP_LIST(macro, ...) __VA_OPT__(SLUICE_PP_EXPAND(SLUICE_PP_STEP(macro, __VA_ARGS__)))
#define SLUICE_PP_STEP(macro, a, ...) macro(a) __VA_OPT__(, SLUICE_PP_AGAIN SLUICE_PP_PARENS(macro, __VA_ARGS__))
#define SLUICE_PP_AGAIN() SLUICE_PP_STEP

// SLUICE_INSPECT(type, field...) makes `type` a message; SLUICE_INSPECT_ENUM(type) lets an enum class be a field. Both
// stand after the type, in its namespace.
#if SLUICE_CAF_1
#define SLUICE_PP_FIELD(name) f.field(#name, x.name)
#define SLUICE_INSPECT(type, ...)                                                          \
  template <class Inspector>                                                               \
  bool inspect(Inspector& f, type& x) {                                                    \
    return f.object(x).fields(SLUICE_PP_LIST(SLUICE_PP_FIELD __VA_OPT__(, ) __VA_ARGS__)); \
  }                                                                                        \
  static_assert(true)
#define SLUICE_INSPECT_ENUM(type)                                                       \
  template <class Inspector>                                                            \
  bool inspect(Inspector& f, type& x) {                                                 \
    using integer = std::underlying_type_t<type>;                                       \
    return f.apply([&x] { return static_cast<integer>(x); },                            \
                   [&x](integer value) { return x = static_cast<type>(value), true; }); \
  }                                                                                     \
  static_assert(true)
#else
#define SLUICE_PP_FIELD(name) ::sluice::compat::detail::field(x.name)
#define SLUICE_INSPECT(type, ...)                                                                                    \
  template <class Inspector>                                                                                         \
  typename Inspector::result_type inspect(Inspector& f, [[maybe_unused]] type& x) {                                  \
    return f(caf::meta::type_name(#type) __VA_OPT__(, ) SLUICE_PP_LIST(SLUICE_PP_FIELD __VA_OPT__(, ) __VA_ARGS__)); \
  }                                                                                                                  \
  static_assert(true)
#define SLUICE_INSPECT_ENUM(type) static_assert(std::is_enum_v<type>)  // CAF 0.17 treats enums as integers by itself
#endif

// -- type ids: global scope, once per program; types are fully qualified and may contain commas --

// Ids of the project begin here, so that an embedder's own block may begin at caf::first_custom_type_id.
#define SLUICE_FIRST_TYPE_ID (caf::first_custom_type_id + 1000)
#define SLUICE_BEGIN_TYPE_IDS(block, first_id) CAF_BEGIN_TYPE_ID_BLOCK(block, first_id)
#define SLUICE_TYPE_ID(block, ...) CAF_ADD_TYPE_ID(block, (__VA_ARGS__))
#define SLUICE_END_TYPE_IDS(block) CAF_END_TYPE_ID_BLOCK(block)

// Makes an enum class over std::uint8_t with `none = 0` an error code; global scope. `category` has at most ten
// characters and is used by 0.17 only; 1.x uses the enum's type id, so the enum must also be in a type id block.
#if SLUICE_CAF_1
#define SLUICE_ERROR_CODE_ENUM(type, category) CAF_ERROR_CODE_ENUM(type)
#else
#define SLUICE_ERROR_CODE_ENUM(type, category) CAF_ERROR_CODE_ENUM_2(type, category)
#endif

namespace sluice::inline v0 {

// Any `template <class Tag, class Rep> struct id { Rep value; }` of this namespace is inspected as its value.
template <class Inspector, template <class, class> class Id, class Tag, class Rep>
requires std::same_as<decltype(Id<Tag, Rep>::value), Rep>
auto inspect(Inspector& f, Id<Tag, Rep>& x) {
#if SLUICE_CAF_1
  return f.apply(x.value);
#else
  return f(x.value);
#endif
}

namespace compat {

#if !SLUICE_CAF_1
namespace detail {

// CAF 0.17 does not know std::optional; a field of that type travels as {bool, value or T{}}.
template <class T>
struct optional_ref {
  std::optional<T>& value;
};

template <class T>
T& field(T& x) {
  return x;
}

template <class T>
optional_ref<T> field(std::optional<T>& x) {
  return {x};
}

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, optional_ref<T>& x) {
  bool present = x.value.has_value();
  T value = present ? *x.value : T{};
  if constexpr (Inspector::writes_state) {
    if (auto err = f(present, value)) return err;
    x.value = present ? std::optional<T>{std::move(value)} : std::nullopt;
    return caf::none;
  } else {
    return f(present, value);
  }
}

}  // namespace detail
#endif

}  // namespace compat
}  // namespace sluice::inline v0
