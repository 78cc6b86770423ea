# How every folder registers its tests; ./dev test runs them all through ctest.
#
# Each suite leaves a JUnit file in build/test-results, so that the closing line of ./dev test counts
# single tests and not only suites (python_tools/dev/summarise_tests.py).
set(TESSERA_TEST_RESULTS ${PROJECT_BINARY_DIR}/test-results)
file(MAKE_DIRECTORY ${TESSERA_TEST_RESULTS})

# Seconds after which a test counts as hanging: far beyond the longest one on a machine busy with other work.
set(TESSERA_TEST_TIMEOUT 1800)

# What every test sees, besides the caller's environment.
set(TESSERA_TEST_ENVIRONMENT
    "PATH=${PROJECT_BINARY_DIR}/bin:$ENV{PATH}"
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python"
    "PYTHONDONTWRITEBYTECODE=1"
    "TESSERA_BUILD_DIR=${PROJECT_BINARY_DIR}")

# A folder's lit suite: tessera_lit_suite(top ${CMAKE_CURRENT_SOURCE_DIR}/test DEPENDS tessera-opt)
# registers the ctest `check-top` and the build target of the same name, which first builds DEPENDS.
# Test files: *.mlir, *.test, *.onnxtxt and *.py; what they may use is listed in regression/lit/README.md.
function(tessera_lit_suite name dir)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(TESSERA_LIT_NAME ${name})
  get_filename_component(TESSERA_LIT_SOURCE ${dir} ABSOLUTE)
  set(TESSERA_LIT_BINARY ${PROJECT_BINARY_DIR}/lit/${name})
  configure_file(${PROJECT_SOURCE_DIR}/regression/lit/lit.site.cfg.py.in
                 ${TESSERA_LIT_BINARY}/lit.site.cfg.py @ONLY)
  set(command ${Python3_EXECUTABLE} ${LLVM_EXTERNAL_LIT} -v --order=lexical
      --xunit-xml-output ${TESSERA_TEST_RESULTS}/check-${name}.xml ${TESSERA_LIT_BINARY})
  add_test(NAME check-${name} COMMAND ${command})
  set_tests_properties(check-${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}")
  add_custom_target(check-${name} COMMAND ${command} DEPENDS ${ARG_DEPENDS} USES_TERMINAL
                    COMMENT "lit: ${name}")
endfunction()

# A folder of pytest files, or one file of them: tessera_pytest(python_tools ${CMAKE_CURRENT_SOURCE_DIR}/test
# [ARGS -k expression]) registers the ctest `pytest-python_tools`.
function(tessera_pytest name dir)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "ARGS" ${ARGN})
  # -p no:cacheprovider: tests never write into the source tree.
  set(command ${TESSERA_PYTHON_LAUNCHER} -m pytest -q -rs -p no:cacheprovider
      --junitxml=${TESSERA_TEST_RESULTS}/pytest-${name}.xml ${ARG_ARGS} ${dir})
  # Not in the source tree: python_tools/tessera there has no compiled modules and would come first.
  add_test(NAME pytest-${name} COMMAND ${command} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(pytest-${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}"
                                                 TIMEOUT ${TESSERA_TEST_TIMEOUT})
endfunction()

# A check of the sources themselves by a script of python_tools/dev.
function(tessera_source_check name script)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python_tools/dev/${script} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}")
endfunction()
