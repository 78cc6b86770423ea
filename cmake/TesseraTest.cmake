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
    "PYTHONDONTWRITEBYTECODE=1" # nothing into the source tree; the package's is made by the build
    "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test-cache" # kernels: shared by the suites, and none are left in the user's
    "TESSERA_BUILD_DIR=${PROJECT_BINARY_DIR}")

# Seconds of one core, of the tests that take long: ctest starts those first, so that none runs alone at the end.
set(TESSERA_TEST_SECONDS
    pytest-regression-exact_models=120 pytest-conformance=110 pytest-regression-field_cases=60 x86_kernel_test=95 pytest-regression-npu=75
    pytest-regression-calibration=75 pytest-regression-x86-v2=60 pytest-regression-learned_weights=55
    bmrt_preset_gcc=50 bmrt_preset_clang=50 pytest-regression-stages=30 pytest-regression-determinism=30 pytest-regression-target=30
    pytest-regression-quantize=25 pytest-regression-borders=25 pytest-regression-equalization=25
    pytest-regression-x86-avx2=25 pytest-regression-x86-avx512=25 pytest-regression-limits=25 pytest-regression-hostile_surroundings=22
    pytest-regression-docs=22 pytest-regression-examples=22 npu_emission_test=20 pytest-regression-interrupts=20 pytest-regression-bad_input=20
    pytest-regression-estimate=20 pytest-regression-npu_orders=16 pytest-regression-npu_survey=16
    pytest-regression-bit_equal=16 pytest-regression-tasks=15 pytest-regression-wheel=20
    pytest-regression-npu_plan=11 pytest-regression-inputs_outputs=10 pytest-regression-files_of_others=10
    pytest-regression-npu_host=10 pytest-regression-advice=8 pytest-regression-check_verdicts=8 pytest-regression-onnx_quantised=8
    pytest-regression-npu_report=7 pytest-regression-zoo=6 pytest-regression-accuracy=5)
# The same of tests that are `fast` nevertheless: what one runs after an edit.
set(TESSERA_FAST_TEST_SECONDS check-top-import=30 pytest-python_tools=25 pytest-regression-dynamic=8)

# Each call of add_test is followed by this: cost and labels. `full` is every test, `fast` those that are not named above:
# two minutes in all on two cores, some of every folder.
function(tessera_test_cost name)
  set(labels full)
  set(listed ${TESSERA_TEST_SECONDS})
  list(FILTER listed INCLUDE REGEX "^${name}=")
  if(NOT listed)
    list(APPEND labels fast)
    set(listed ${TESSERA_FAST_TEST_SECONDS})
    list(FILTER listed INCLUDE REGEX "^${name}=")
  endif()
  set_property(TEST ${name} APPEND PROPERTY LABELS ${labels})
  if(listed)
    string(REGEX REPLACE ".*=" "" seconds "${listed}")
    set_tests_properties(${name} PROPERTIES COST ${seconds})
  endif()
endfunction()

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
  tessera_test_cost(check-${name})
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
  tessera_test_cost(pytest-${name})
endfunction()

# A check of the sources themselves by a script of python_tools/dev.
function(tessera_source_check name script)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python_tools/dev/${script} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}")
  tessera_test_cost(${name})
endfunction()
