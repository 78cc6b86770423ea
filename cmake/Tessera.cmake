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

# tessera_unity(name) compiles the sources of a target in groups: those of one folder, up to TESSERA_UNITY_BYTES. A group
# parses headers and instantiates their templates once. Sources with their own flags are compiled alone. Files of one
# folder must not define a name twice, not even in anonymous namespaces.
option(TESSERA_UNITY "Compile several sources at once" ON)
set(TESSERA_UNITY_BYTES 36000) # an edit compiles one group again: a few seconds
function(tessera_unity target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(SORT sources)
  list(LENGTH sources count)
  set_target_properties(${target} PROPERTIES TESSERA_GROUPS ${count})
  if(NOT TESSERA_UNITY)
    return()
  endif()
  set(group 0)
  set(bytes 0)
  set(last_folder "")
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    get_filename_component(folder ${path} DIRECTORY)
    file(SIZE ${path} size)
    math(EXPR bytes "${bytes} + ${size}")
    if(bytes GREATER TESSERA_UNITY_BYTES OR NOT folder STREQUAL last_folder)
      math(EXPR group "${group} + 1")
      set(bytes ${size})
    endif()
    set(last_folder ${folder})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON TESSERA_GROUPS ${group})
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

# Sets the options of test code. It is not optimised, because that takes longer than running it.
function(tessera_test_options target)
  tessera_target_options(${target})
  tessera_unity(${target})
  target_compile_options(${target} PRIVATE -O0)
endfunction()

# tessera_gtest(name SOURCES a_test.cpp LIBS x y PRECOMPILE <headers besides gtest's>) defines a gtest binary. OPTIMISED:
# its sources compute for seconds.
function(tessera_gtest name)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "OPTIMISED" "" "SOURCES;LIBS;PRECOMPILE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  if(MLIR IN_LIST ARG_LIBS) # these run kernels and whole networks
    tessera_target_options(${name})
    # Use the flags of the compiler's libraries, so that the test can use their precompiled header.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
    tessera_use_pch(${name})
  else()
    if(ARG_OPTIMISED)
      tessera_target_options(${name})
      tessera_unity(${name})
    else()
      tessera_test_options(${name})
    endif()
    get_target_property(groups ${name} TESSERA_GROUPS)
    if(groups GREATER 2)
      tessera_precompile(${name} <gtest/gtest.h> <algorithm> <string> <vector> ${ARG_PRECOMPILE})
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_output=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}")
  tessera_test_cost(${name})
endfunction()
