#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_plugin.sh MAKE_MODELS C_PROGRAM LIBBMRT PLUGIN OLD_PLUGIN: checks that a C program linked only with libbmrt.so
# runs a model for an NPU, wherever the two libraries are installed and whatever the current folder is. Without the
# plug-in, or with an incompatible one, an error message must name what is missing, and models for x86 must still run.
set -eu
program=$2
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
"$1" "$dir"
mkdir "$dir/lib" "$dir/elsewhere"
cp "$3" "$4" "$dir/lib"
chmod -R a-w "$dir/lib"
status=0

# expect WHAT FOLDER LIBRARY_PATH MODEL WANTED: runs the program in FOLDER; its output must contain WANTED.
expect() {
  printed=$(cd "$2" && LD_LIBRARY_PATH=$3 "$program" "$4" 2>&1) || true
  case $printed in
  *"$5"*) ;;
  *)
    echo "error: $1: expected '$5', got: $printed"
    status=1
    ;;
  esac
}

expect "installed read-only" / "$dir/lib" "$dir/npu_add.bmodel" "right, library"
expect "kernels between streams" / "$dir/lib" "$dir/npu_mixed.bmodel" "right, library"
expect "found by a relative path" "$dir" lib npu_add.bmodel "right, library"
expect "another current folder" "$dir/elsewhere" ../lib ../npu_add.bmodel "right, library"

chmod u+w "$dir/lib"
plugin=$dir/lib/$(basename "$4")
mv "$plugin" "$dir/whole"
missing="subnet 'main': chips of family 'npu' need the back end libbmrt_npu.so beside $dir/lib/libbmrt.so.0: "
expect "no plug-in" / "$dir/lib" "$dir/npu_add.bmodel" "$missing"
expect "no plug-in, in part" / "$dir/lib" "$dir/npu_mixed.bmodel" "subnet 'npu_0': chips of family 'npu' need the back end"
expect "no plug-in, x86" / "$dir/lib" "$dir/add_relu.bmodel" "right, library"

echo "no library" > "$plugin"
expect "no library" / "$dir/lib" "$dir/npu_add.bmodel" "$missing"

cp "$5" "$plugin"
expect "another version" / "$dir/lib" "$dir/npu_add.bmodel" "libbmrt_npu.so has version 99 of the interface, this library has"
exit $status
