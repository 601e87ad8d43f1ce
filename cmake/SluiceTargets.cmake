# SPDX-License-Identifier: Apache-2.0
#
# `#include <sluice/room/file.hpp>` is the same line inside the repository and after installation: the build
# tree has a folder `include/sluice` with a link to each room.

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SLUICE_CCACHE})
endif()

set(SLUICE_INCLUDE_ROOT ${CMAKE_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${SLUICE_INCLUDE_ROOT}/sluice)
foreach(room gpu messages actors runtime)
  if(NOT EXISTS ${SLUICE_INCLUDE_ROOT}/sluice/${room})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${room} ${SLUICE_INCLUDE_ROOT}/sluice/${room} SYMBOLIC)
  endif()
endforeach()
configure_file(${CMAKE_SOURCE_DIR}/cmake/version.hpp.in ${SLUICE_INCLUDE_ROOT}/sluice/version.hpp @ONLY)

# sluice_library(<name> SOURCES <file>... [LINK <target>...]): a static library `sluice_<name>` with the alias
# `sluice::<name>`, installed with the others. For the rooms only; apps and tests use add_library().
function(sluice_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(sluice_${name} STATIC ${arg_SOURCES})
  add_library(sluice::${name} ALIAS sluice_${name})
  set_target_properties(sluice_${name} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(sluice_${name} PUBLIC
    $<BUILD_INTERFACE:${SLUICE_INCLUDE_ROOT}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(sluice_${name} PUBLIC cxx_std_20)
  target_link_libraries(sluice_${name} PUBLIC ${arg_LINK})
  sluice_warnings(sluice_${name})
  set_property(GLOBAL APPEND PROPERTY SLUICE_LIBRARIES sluice_${name})
endfunction()

# g++ 12 warns of overlapping copies inside std::string where there are none (its bug 105651).
function(sluice_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<BOOL:${SLUICE_WERROR}>:-Werror>)
endfunction()
