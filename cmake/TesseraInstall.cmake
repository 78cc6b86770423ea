# Installs what applications need: `cmake --install build/runtime --prefix DIR`, or the packages of ./dev package.
# Component `runtime` is for running programs, `devel` for compiling them.
include(CMakePackageConfigHelpers)

install(TARGETS bmrt EXPORT TesseraRuntime
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT devel)
# In the folder of libbmrt.so, which loads them by name. No target links to them.
install(TARGETS bmrt_npu EXPORT TesseraNpu LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(TARGETS bmrt_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/bmruntime/include/bmrt TYPE INCLUDE COMPONENT devel)
install(FILES ${PROJECT_SOURCE_DIR}/bmodel_format/include/tessera_custom_op.h TYPE INCLUDE COMPONENT devel)

# find_package(Tessera) reads one file of targets per component.
set(TESSERA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Tessera)
set_target_properties(bmrt_npu PROPERTIES EXPORT_NAME npu)
foreach(component Runtime Npu)
  install(EXPORT Tessera${component} NAMESPACE Tessera:: DESTINATION ${TESSERA_CMAKE_DIR} COMPONENT devel)
endforeach()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TesseraConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/TesseraConfig.cmake INSTALL_DESTINATION ${TESSERA_CMAKE_DIR})
# 0.x: a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/TesseraConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/TesseraConfig.cmake ${PROJECT_BINARY_DIR}/cmake/TesseraConfigVersion.cmake
        DESTINATION ${TESSERA_CMAKE_DIR} COMPONENT devel)

# bmrt.pc determines the prefix from its own place, so that the installation can be moved.
file(RELATIVE_PATH TESSERA_PC_TO_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(${PROJECT_SOURCE_DIR}/cmake/bmrt.pc.in ${PROJECT_BINARY_DIR}/cmake/bmrt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/bmrt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT devel)
