#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Binds an operator that Tessera does not know to a function in C, built with the installed header only.
set -eu
here=$(dirname "$0")
"${PYTHON:-python3}" "$here/network.py"
# shellcheck disable=SC2046  # several words
${CC:-cc} -O2 -Wall -Wextra -shared -fPIC -o libbilateral.so "$here/bilateral.c" $(pkg-config --cflags bmrt) -lm

model_transform --model_def net.onnx --mlir net_top.mlir --custom_ops ./libbilateral.so --quiet
run_calibration net_top.mlir --dataset samples.npz --custom_ops ./libbilateral.so -o net_cali.json --quiet
for chip in x86 npu-base; do
  model_deploy --mlir net_top.mlir --chip $chip --quantize INT8 --calibration_table net_cali.json \
      --custom_ops ./libbilateral.so --model $chip.bmodel --quiet
done
"${PYTHON:-python3}" "$here/compare.py"
