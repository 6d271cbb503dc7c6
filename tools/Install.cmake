# What `cmake --install` copies, and what find_package(Keratin) finds there.
include(CMakePackageConfigHelpers)
set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Keratin)

set(installed keratin keratin_rt)
foreach(tool keratinc keratin-run keratin-opt keratin-bench)
  if(TARGET ${tool})
    list(APPEND installed ${tool})
    set_target_properties(${tool} PROPERTIES
      INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${LLVM_LIBRARY_DIR}")
  endif()
endforeach()
set_target_properties(keratin PROPERTIES INSTALL_RPATH "${LLVM_LIBRARY_DIR}")
set_target_properties(keratin_rt PROPERTIES EXPORT_NAME rt)

install(TARGETS ${installed} EXPORT KeratinTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY}/libkeratin_rt.a
  DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT KeratinTargets NAMESPACE Keratin:: DESTINATION ${cmake_dir})
install(DIRECTORY
    ${CMAKE_SOURCE_DIR}/frontend/include/keratin
    ${CMAKE_BINARY_DIR}/frontend/include/keratin # ops.h, from keratin-opgen
    ${CMAKE_SOURCE_DIR}/runtime/include/keratin
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/KeratinConfig.cmake.in
  KeratinConfig.cmake INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(KeratinConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/KeratinConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/KeratinConfigVersion.cmake
    ${CMAKE_CURRENT_LIST_DIR}/KeratinModel.cmake
  DESTINATION ${cmake_dir})
