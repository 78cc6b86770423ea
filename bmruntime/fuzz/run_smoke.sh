#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_smoke.sh MAKE_MODELS MAKE_CORPUS FUZZER FLAGS...: runs the loader's fuzzer briefly, starting from real models.
set -eu
make_models=$1 make_corpus=$2 fuzzer=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/models" "$work/seeds"
"$make_models" "$work/models"
# An explicit list: the order of files in a folder differs between file systems.
seeds=
for name in abacus_host add_relu blocked dynamic npu_add npu_mixed sized stages; do
  "$make_corpus" "$work/models/$name.bmodel" "$work/seeds/$name"
  seeds=$seeds${seeds:+,}$work/seeds/$name
done
"$fuzzer" "$@" "-seed_inputs=$seeds"
