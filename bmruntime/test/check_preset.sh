#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_preset.sh MAKE_MODELS SOURCE BUILD CC CXX: builds and installs the preset `runtime` with these compilers. Checks
# that the libraries, the headers and the bench are installed, and that a C program compiled against the installation
# alone runs models for x86 and for the NPU. BUILD is kept, so that the next run is incremental. With
# TESSERA_PRESET_TESTS, also builds the tools and tests, and runs the tests.
set -eu
make_models=$1
source=$2
build=$3
cc=$4
cxx=$5
prefix=$build/installed
launcher=$(command -v ccache || true)
launcher=${launcher:+env;CCACHE_SLOPPINESS=pch_defines,time_macros;$launcher}
if [ -n "${TESSERA_PRESET_TESTS:-}" ]; then
  targets=all
else
  targets="bmrt bmrt_npu bmrt_cuda bmrt_bench bmrt_peak" # what is installed
fi

cd "$source"
build_preset() {
  # shellcheck disable=SC2086 # several targets
  cmake --preset runtime -B "$build" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" \
    -DTESSERA_BUILD_TESTS="${TESSERA_PRESET_TESTS:+ON}" && ninja -C "$build" $targets
}
if ! build_preset > "$build.log" 2>&1; then
  tail -n 40 "$build.log"
  echo "error: the preset does not build with $cxx"
  exit 1
fi
rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" > /dev/null

status=0
libraries=$(dirname "$(find "$prefix" -name libbmrt.so)")
for file in "$libraries/libbmrt_npu.so" "$prefix/include/bmrt/bmrt.h" "$prefix/bin/bmrt_bench"; do
  [ -e "$file" ] || { echo "error: the installation lacks $file"; status=1; }
done

models=$build/models
mkdir -p "$models"
"$make_models" "$models"
"$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" bmruntime/test/c_api_test.c \
  -L"$libraries" -lbmrt -lm -o "$build/c_program"
for model in add_relu npu_add npu_mixed; do
  printed=$(LD_LIBRARY_PATH=$libraries "$build/c_program" "$models/$model.bmodel" 2>&1) || true
  case $printed in
  *"right, library"*) ;;
  *) echo "error: $model: expected 'right, library', got: $printed"; status=1 ;;
  esac
done
if [ -n "${TESSERA_PRESET_TESTS:-}" ]; then
  ctest --test-dir "$build" --output-on-failure || status=1
fi
exit $status
