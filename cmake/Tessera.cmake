# Helper functions for every folder of Tessera.

# Sets the warnings, include folders and sanitizers of every target.
function(tessera_target_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter)
  # Only for this build: the installed headers are in include/bmrt.
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
  if(TESSERA_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${TESSERA_SANITIZE})
  endif()
  # Debian's LLVMConfig disables assertions; the development build enables them.
  if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    target_compile_options(${target} PRIVATE -UNDEBUG)
  endif()
endfunction()

# tessera_precompile(bmrt_run <algorithm> <vector>) parses headers that most sources of a target include only once.
# Sources must nevertheless include what they use. Turn TESSERA_PCH off to find missing includes, or if several source
# trees share one ccache.
option(TESSERA_PCH "Precompile headers" ON)
function(tessera_precompile target)
  # With gcc, precompiling takes longer than it saves.
  if(TESSERA_PCH AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # Without the time stamp, ccache recognises an unchanged header.
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# tessera_gtest(name SOURCES a_test.cpp LIBS x y PRECOMPILE <headers besides gtest's>) defines a gtest binary.
function(tessera_gtest name)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;PRECOMPILE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  tessera_target_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  if(MLIR IN_LIST ARG_LIBS)
    # Use the flags of the compiler's libraries, so that the test can use their precompiled header.
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
