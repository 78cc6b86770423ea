# Debian packages: run `cpack -G DEB` in a build folder of the preset `package`; ./dev package does everything.
#
#   libbmrt0       libbmrt.so.0 and the back ends that it loads
#   libbmrt-dev    headers, find_package(Tessera), bmrt.pc
#   tessera-tools  the commands, the statically linked compiler, the Python package
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Tessera maintainers <maintainers@tessera.invalid>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime devel)
if(TESSERA_BUILD_COMPILER)
  list(APPEND CPACK_COMPONENTS_ALL tools)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(deb ${PROJECT_SOURCE_DIR}/cmake/deb)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libbmrt0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "runs .bmodel files: networks compiled by Tessera")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${deb}/triggers)

set(CPACK_DEBIAN_DEVEL_PACKAGE_NAME libbmrt-dev)
set(CPACK_DEBIAN_DEVEL_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVEL_PACKAGE_DEPENDS "libbmrt0 (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVEL_DESCRIPTION "headers of libbmrt, for C and C++")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME tessera-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
# The compiled modules support only this version of Python.
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "python3 (>= 3.11), python3 (<< 3.12), python3-numpy, python3-pil")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "python3-onnx, python3-rich")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "compiles trained networks (ONNX) into .bmodel files")
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_EXTRA ${deb}/postinst ${deb}/prerm)

# Collects Tessera's licence and the licences of the libraries that are linked into programs and modules.
file(READ ${PROJECT_SOURCE_DIR}/LICENSE licence)
foreach(package llvm-22-dev libmlir-22-dev liblld-22-dev libprotobuf-dev libonnx-dev zlib1g-dev libzstd-dev
        libflatbuffers-dev libxxhash-dev pybind11-dev libcli11-dev nlohmann-json3-dev)
  if(EXISTS /usr/share/doc/${package}/copyright)
    file(READ /usr/share/doc/${package}/copyright text)
    string(APPEND licence "\n==== ${package} ====\n\n${text}")
  endif()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/deb/copyright "${licence}")
foreach(component runtime:libbmrt0 devel:libbmrt-dev tools:tessera-tools)
  string(REPLACE ":" ";" component ${component})
  list(GET component 1 name)
  list(GET component 0 component)
  install(FILES ${PROJECT_BINARY_DIR}/deb/copyright DESTINATION share/doc/${name}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
