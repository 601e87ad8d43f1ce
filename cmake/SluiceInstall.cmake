# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install` puts the libraries, the headers as include/sluice/<room>/, the binaries, and the package that
# `find_package(Sluice)` finds. The libraries are those that sluice_library() made in the rooms.

include(CMakePackageConfigHelpers)

set(SLUICE_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Sluice)

# Those of apps/ are parts of the binaries.
get_property(SLUICE_LIBRARIES GLOBAL PROPERTY SLUICE_LIBRARIES)
list(FILTER SLUICE_LIBRARIES EXCLUDE REGEX "^sluice_(http|serve)")
install(TARGETS ${SLUICE_LIBRARIES} EXPORT SluiceLibraries ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT SluiceLibraries NAMESPACE sluice:: DESTINATION ${SLUICE_CONFIG_DIR})

install(DIRECTORY gpu messages actors runtime
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sluice FILES_MATCHING PATTERN "*.hpp")
install(FILES ${SLUICE_INCLUDE_ROOT}/sluice/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sluice)

configure_package_config_file(cmake/SluiceConfig.cmake.in ${CMAKE_BINARY_DIR}/SluiceConfig.cmake
  INSTALL_DESTINATION ${SLUICE_CONFIG_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/SluiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/SluiceConfig.cmake ${CMAKE_BINARY_DIR}/SluiceConfigVersion.cmake
  cmake/FindCAF.cmake DESTINATION ${SLUICE_CONFIG_DIR})
