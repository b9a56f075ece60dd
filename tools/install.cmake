# cmake --install: the program, the library with its header and CMake package, man page, completions, and the
# topologies and scenarios that come with weft (tools/python adds the Python package). cpack -G DEB: the same as a Debian package.
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(TARGETS weft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS libweft EXPORT weftTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(PROGRAMS collect DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME weft-collect)
install(FILES weft.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)
if(TARGET weft_record_preload)
  install(TARGETS weft_record_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${package})
configure_package_config_file(weftConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake
  INSTALL_DESTINATION ${package})
# Below 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake
  DESTINATION ${package})

install(FILES ${docs}/weft.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${docs}/weft DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# Debian's zsh looks in one folder for packages and in another for the rest.
install(CODE "
  if(CMAKE_INSTALL_PREFIX MATCHES \"/usr$\")
    set(functions vendor-completions)
  else()
    set(functions site-functions)
  endif()
  file(INSTALL \"${docs}/_weft\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/zsh/\${functions}\")")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/topologies ${PROJECT_SOURCE_DIR}/scenarios
  DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES report_page/THIRD_PARTY.txt DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright-report-page)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_CONTACT "The weft maintainers <maintainers@weft.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "${PROJECT_DESCRIPTION}
 Predicts how fast data moves between GPUs on different machines, and says why.
 The program weft, the library libweft with its header and CMake package.")
# What the program is linked with, by dpkg-shlibdeps; and what programs that use the library are built with.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libfmt-dev, libpugixml-dev, libyaml-cpp-dev")
# The Python module is of one version of Python; in Debian `python3` says which it is. The program does without.
set(WEFT_PYTHON_OF_DEBIAN OFF)
if(WEFT_BUILD_PYTHON)
  file(REAL_PATH ${Python3_EXECUTABLE} python)
  if(python MATCHES "^/usr/bin/")
    set(WEFT_PYTHON_OF_DEBIAN ON)
  endif()
endif()
if(WEFT_PYTHON_OF_DEBIAN)
  math(EXPR next "${Python3_VERSION_MINOR} + 1")
  set(python ${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR})
  string(APPEND CPACK_DEBIAN_PACKAGE_RECOMMENDS
    ", python3 (>= ${python}~), python3 (<< ${Python3_VERSION_MAJOR}.${next})")
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3-pandas)
  string(APPEND CPACK_DEBIAN_PACKAGE_DESCRIPTION "\n The Python package weft, for Python ${python}.")
endif()
if(PROJECT_IS_TOP_LEVEL)
  include(CPack)
endif()
