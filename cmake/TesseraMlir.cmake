# Finds LLVM/MLIR/lld 22 and defines how our dialects and compiler libraries are built.
find_package(MLIR REQUIRED CONFIG)
find_package(LLD REQUIRED CONFIG PATHS ${LLVM_DIR}/../lld)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Tessera needs LLVM 22, found ${LLVM_VERSION}; run ./dev setup")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(TESSERA_LLVM_TOOLS_DIR ${LLVM_TOOLS_BINARY_DIR})
# LLVMConfig names a bin/llvm-lit that Debian does not ship; its lit is llvm-22-tools' bin/lit.
find_program(LLVM_EXTERNAL_LIT lit HINTS ${TESSERA_LLVM_TOOLS_DIR} NO_DEFAULT_PATH REQUIRED)

# Parsing MLIR's headers is half of a build; they are precompiled once, and once more for a target with flags of
# its own (OWN). Off: to find missing includes, or where several trees share one ccache.
option(TESSERA_PCH "Precompile MLIR's headers" ON)
function(tessera_use_pch target)
  cmake_parse_arguments(ARG "OWN" "" "" ${ARGN})
  if(NOT TESSERA_PCH)
    return()
  endif()
  # Without the time stamp ccache can tell that the header has not changed.
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  if(ARG_OWN)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/MlirPch.h)
  else()
    target_precompile_headers(${target} REUSE_FROM TesseraMlirPch)
  endif()
endfunction()

# A compiler library; OWN_FLAGS: compiled with flags of its own, it cannot share the precompiled header.
# MLIR itself is linked once, by the executable (libMLIR.so, libLLVM.so):
# mixing it with the static archives registers options twice.
function(tessera_compiler_library name)
  cmake_parse_arguments(ARG "OWN_FLAGS" "" "SOURCES;LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  tessera_target_options(${name})
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_OWN_FLAGS)
    tessera_use_pch(${name} OWN)
  else()
    tessera_use_pch(${name})
  endif()
endfunction()
tessera_compiler_library(TesseraMlirPch OWN_FLAGS SOURCES ${PROJECT_SOURCE_DIR}/cmake/MlirPch.cpp)

# A compiler executable over the libraries above.
function(tessera_compiler_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  tessera_target_options(${name})
  target_include_directories(${name} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} MLIR LLVM)
endfunction()

# mlir-tblgen over FILE.td into OUT with the given generator flags, collected for
# add_public_tablegen_target: tessera_tablegen(TopOps.td TopConvOps.h.inc -gen-op-decls ...)
function(tessera_tablegen td out)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${out} ${ARGN} EXTRA_INCLUDES ${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  set(TABLEGEN_OUTPUT ${TABLEGEN_OUTPUT} PARENT_SCOPE)
endfunction()
