# Finds LLVM/MLIR/lld 22 and defines functions that build dialects and compiler libraries.
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
# LLVMConfig names a bin/llvm-lit that Debian does not ship; Debian's lit is bin/lit of llvm-22-tools.
find_program(LLVM_EXTERNAL_LIT lit HINTS ${TESSERA_LLVM_TOOLS_DIR} NO_DEFAULT_PATH REQUIRED)

# Parsing MLIR's headers takes half of a build. They are precompiled once, and once more for each target with its own
# flags (OWN). TESSERA_PCH_OF names the target whose precompiled header the targets of a folder and its subfolders use.
set(TESSERA_PCH_OF TesseraMlirPch)
function(tessera_use_pch target)
  cmake_parse_arguments(ARG "OWN" "" "" ${ARGN})
  if(ARG_OWN)
    tessera_precompile(${target} ${PROJECT_SOURCE_DIR}/cmake/MlirPch.h)
  elseif(TESSERA_PCH)
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    target_precompile_headers(${target} REUSE_FROM ${TESSERA_PCH_OF})
  endif()
endfunction()

# Defines a compiler library. With OWN_FLAGS it is compiled with its own flags and cannot share the precompiled header.
# Only the executable links MLIR (libMLIR.so, libLLVM.so): mixing the shared libraries with static archives would
# register options twice.
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

# tessera_dialect_pch(TesseraTopPch top_dialect/IR/TopOps.h DEPENDS TesseraTopIncGen) precompiles MLIR's headers and
# those of a dialect that nearly every source of a folder includes; select it with TESSERA_PCH_OF.
function(tessera_dialect_pch name header)
  tessera_compiler_library(${name} OWN_FLAGS SOURCES ${PROJECT_SOURCE_DIR}/cmake/MlirPch.cpp ${ARGN})
  tessera_precompile(${name} ${PROJECT_SOURCE_DIR}/${header})
endfunction()
tessera_compiler_library(TesseraMlirPch OWN_FLAGS SOURCES ${PROJECT_SOURCE_DIR}/cmake/MlirPch.cpp)

# Defines an executable that links compiler libraries.
function(tessera_compiler_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  tessera_target_options(${name})
  target_include_directories(${name} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} MLIR LLVM)
endfunction()

# tessera_tablegen(TopOps.td TopConvOps.h.inc -gen-op-decls ...) runs mlir-tblgen on a .td file with the given generator
# flags; add_public_tablegen_target collects the outputs.
function(tessera_tablegen td out)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${out} ${ARGN} EXTRA_INCLUDES ${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  set(TABLEGEN_OUTPUT ${TABLEGEN_OUTPUT} PARENT_SCOPE)
endfunction()

# lld's archives depend on libLLVM.so and libzstd.so; a program that contains LLVM must not link these.
set(not_static $<NOT:$<BOOL:$<TARGET_PROPERTY:TESSERA_STATIC_LLVM>>>)
set_target_properties(lldCommon PROPERTIES INTERFACE_LINK_LIBRARIES "$<${not_static}:LLVM>")
set_target_properties(lldELF PROPERTIES
  INTERFACE_LINK_LIBRARIES "lldCommon;$<${not_static}:ZLIB::ZLIB>;$<${not_static}:zstd::libzstd_shared>;$<${not_static}:LLVM>")

# tessera_static_compiler(name like LIBS x y) links the objects of the program `like` with the static archives of MLIR
# and LLVM and removes unused code. The result is a single file that runs without an LLVM installation.
function(tessera_static_compiler name like)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  # The linker selects the archive members that are needed. Archives for unrelated tools are excluded by name.
  file(GLOB archives ${LLVM_LIBRARY_DIR}/libMLIR*.a ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  list(FILTER archives EXCLUDE REGEX "CAPI|libMLIRTest|BOLT|Exegesis")
  add_executable(${name} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/NoPolly.cpp $<TARGET_OBJECTS:${like}>)
  tessera_target_options(${name})
  target_include_directories(${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  set_target_properties(${name} PROPERTIES
    TESSERA_STATIC_LLVM ON OUTPUT_NAME ${like} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/static
    # DT_RPATH also applies to dependencies of libraries, which a wheel has in lib/ beside bin/.
    SKIP_BUILD_RPATH ON)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} ${archives} libz.a libzstd.a)
  target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--strip-all -static-libgcc
                                      -Wl,--disable-new-dtags "-Wl,-rpath,$ORIGIN/../lib")
endfunction()
