# Functions with which every folder registers its tests; ./dev test runs all of them through ctest.
#
# Each suite writes a JUnit file to build/test-results, so that the last line of ./dev test counts single tests and not
# only suites (python_tools/dev/summarise_tests.py).
set(TESSERA_TEST_RESULTS ${PROJECT_BINARY_DIR}/test-results)
file(MAKE_DIRECTORY ${TESSERA_TEST_RESULTS})

# Seconds after which a test counts as hanging: far longer than any test takes, even on a busy machine.
set(TESSERA_TEST_TIMEOUT 1800)

# Environment of every test, in addition to the caller's.
set(TESSERA_TEST_ENVIRONMENT
    "PATH=${PROJECT_BINARY_DIR}/bin:$ENV{PATH}"
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python"
    "PYTHONDONTWRITEBYTECODE=1" # keep bytecode out of the source tree; the build creates the package's
    "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test-cache" # kernel cache: shared by the suites, separate from the user's
    "TESSERA_BUILD_DIR=${PROJECT_BINARY_DIR}")

# CPU seconds of the tests that take long. ctest starts these first, so that none of them runs alone at the end.
set(TESSERA_TEST_SECONDS
    x86_kernel_test=220 pytest-conformance=145 pytest-regression-arm64=90 pytest-regression-exact_models=66
    npu_emission_test=59
    pytest-regression-npu=51 bmrt_preset=50 pytest-regression-field_cases=47
    pytest-regression-docs=44 pytest-regression-x86-v2=32 pytest-regression-learned_weights=31
    pytest-regression-calibration=26 pytest-regression-cuda_tiles=25 pytest-regression-quantize=24
    pytest-regression-cuda=21 pytest-regression-x86-avx2=20 pytest-regression-hostile_surroundings=19 abacus_test=18
    pytest-regression-bad_input=18 pytest-regression-borders=18 pytest-regression-stages=18
    pytest-regression-examples=17 pytest-regression-determinism=16 pytest-regression-reduce=16
    pytest-regression-x86-avx512=16 pytest-regression-estimate=15 pytest-regression-interrupts=15
    pytest-regression-limits=15 pytest-regression-target=13 pytest-regression-tasks=13 pytest-regression-wheel=12
    pytest-regression-cuda_attention=11 pytest-regression-inputs_outputs=11 pytest-regression-npu_plan=11
    pytest-regression-equalization=10 pytest-regression-from_onnx=10 pytest-regression-masked_rows=10
    cross_compile_test=9 pytest-regression-npu_host=9 pytest-regression-npu_orders=9 pytest-regression-npu_survey=9
    pytest-regression-report=9 pytest-regression-cuda_assembler=8 pytest-regression-files_of_others=8
    pytest-regression-onnx_quantised=8 pytest-regression-references=8 pytest-regression-advice=7
    pytest-regression-bit_equal=7 pytest-regression-npu_report=7 pytest-regression-accuracy=6
    pytest-regression-cuda_convs=6 pytest-regression-cuda_on_device=6 pytest-regression-not_a_number=6 check-quant=5
    pytest-regression-bench=5 pytest-regression-check_verdicts=5 pytest-regression-cuda_perf=5
    pytest-regression-elementary=5 pytest-regression-npu_layers=5 pytest-regression-output_error_tools=5
    pytest-regression-zoo=5)
# CPU seconds of tests that are labelled `fast` nevertheless, i.e. that developers run after an edit.
set(TESSERA_FAST_TEST_SECONDS check-top-import=30 pytest-python_tools=25 pytest-regression-dynamic=8)

# Sets cost and labels of a test; follows each call of add_test. Every test has the label `full`. Tests that are not
# listed above have the label `fast`: they take two minutes in total on two cores and cover every folder.
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

# tessera_lit_suite(top ${CMAKE_CURRENT_SOURCE_DIR}/test DEPENDS tessera-opt) registers the lit suite of a folder as the
# ctest `check-top` and as a build target of the same name, which first builds DEPENDS. Test files are *.mlir, *.test,
# *.onnxtxt and *.py; regression/lit/README.md lists the tools that they may use.
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

# tessera_pytest(python_tools ${CMAKE_CURRENT_SOURCE_DIR}/test [ARGS -k expression]) registers a folder of pytest files,
# or a single file, as the ctest `pytest-python_tools`.
function(tessera_pytest name dir)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "ARGS" ${ARGN})
  # -p no:cacheprovider: tests never write into the source tree.
  set(command ${TESSERA_PYTHON_LAUNCHER} -m pytest -q -rs -p no:cacheprovider
      --junitxml=${TESSERA_TEST_RESULTS}/pytest-${name}.xml ${ARG_ARGS} ${dir})
  # Do not run in the source tree: its python_tools/tessera lacks compiled modules and would be found first.
  add_test(NAME pytest-${name} COMMAND ${command} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(pytest-${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}"
                                                 TIMEOUT ${TESSERA_TEST_TIMEOUT})
  tessera_test_cost(pytest-${name})
endfunction()

# Registers a check of the sources by a script of python_tools/dev.
function(tessera_source_check name script)
  if(NOT TESSERA_BUILD_TESTS)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/python_tools/dev/${script} ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT}")
  tessera_test_cost(${name})
endfunction()
