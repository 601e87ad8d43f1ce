# SPDX-License-Identifier: Apache-2.0
#
# Finds the core library of the C++ Actor Framework and defines the target CAF::core.
#
# A CAFConfig.cmake (CAF 0.18 and later) is preferred. Otherwise the plain headers and libraries are taken, which
# is what Debian's libcaf-dev 0.17.6 consists of. Sets CAF_FOUND and CAF_VERSION. Setting CAF_ROOT points at an
# installation outside the default prefixes.

include(FindPackageHandleStandardArgs)

find_package(CAF CONFIG QUIET COMPONENTS core)
if(CAF_FOUND AND TARGET CAF::core)
  find_package_handle_standard_args(CAF CONFIG_MODE)
  return()
endif()

find_package(Threads QUIET)
find_path(CAF_INCLUDE_DIR caf/all.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
mark_as_advanced(CAF_INCLUDE_DIR CAF_CORE_LIBRARY)

# The version is one number, {major}{minor}{patch} of two digits each. 1.x keeps it in a generated header.
set(CAF_VERSION "")
foreach(header caf/config.hpp caf/detail/build_config.hpp)
  if(NOT CAF_VERSION AND EXISTS "${CAF_INCLUDE_DIR}/${header}")
    file(STRINGS "${CAF_INCLUDE_DIR}/${header}" line REGEX "^#define CAF_VERSION [0-9]+" LIMIT_COUNT 1)
    if(line MATCHES "CAF_VERSION ([0-9]+)")
      math(EXPR major "${CMAKE_MATCH_1} / 10000")
      math(EXPR minor "(${CMAKE_MATCH_1} / 100) % 100")
      math(EXPR patch "${CMAKE_MATCH_1} % 100")
      set(CAF_VERSION "${major}.${minor}.${patch}")
    endif()
  endif()
endforeach()

find_package_handle_standard_args(CAF
  REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR Threads_FOUND
  VERSION_VAR CAF_VERSION)

if(CAF_FOUND AND NOT TARGET CAF::core)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_CORE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
