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

# A compiler library. MLIR itself is linked once, by the executable (libMLIR.so, libLLVM.so):
# mixing it with the static archives registers options twice.
function(tessera_compiler_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  tessera_target_options(${name})
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

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
