# Helper functions for every folder of Tessera.

# The warnings every target of ours is built with.
function(tessera_target_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  # Of this build only: what is installed has include/bmrt.
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
  if(TESSERA_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${TESSERA_SANITIZE})
  endif()
  # Debian's LLVMConfig hides assertion settings; our dev build wants our own asserts.
  if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    target_compile_options(${target} PRIVATE -UNDEBUG)
  endif()
endfunction()

# Headers that most sources of a target include, parsed once for it: tessera_precompile(bmrt_core <algorithm> <vector>)
# Sources include what they use all the same. Off: to find missing includes, or where several trees share one ccache.
option(TESSERA_PCH "Precompile headers" ON)
function(tessera_precompile target)
  # gcc takes longer to precompile them than it saves.
  if(TESSERA_PCH AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # Without the time stamp ccache can tell that the header has not changed.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# A gtest binary: tessera_gtest(name SOURCES a_test.cpp LIBS x y PRECOMPILE <headers beside gtest's>)
function(tessera_gtest name)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;PRECOMPILE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  tessera_target_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  if(MLIR IN_LIST ARG_LIBS)
    # As the compiler's libraries are compiled, so that it can have their precompiled header.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
    tessera_use_pch(${name})
  else()
    list(LENGTH ARG_SOURCES sources)
    if(sources GREATER 3)
      tessera_precompile(${name} <gtest/gtest.h> <algorithm> <string> <vector> ${ARG_PRECOMPILE})
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_output=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}")
  tessera_test_cost(${name})
endfunction()
