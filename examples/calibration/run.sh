#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Quantises with samples from a generator; the integer results have the same bits on every chip.
set -eu
here=$(dirname "$0")
net=$here/../../regression/models/mobilenetv1_0.25_128

model_transform --model_def "$net/mobilenetv1_0.25_128.onnx" --mlir net_top.mlir --quiet
PICTURES=$net/pictures run_calibration net_top.mlir --dataset "$here/samples.py" \
    -o net_cali.json --quiet
for chip in x86 npu-edge; do
  model_deploy --mlir net_top.mlir --chip $chip --quantize INT8 --calibration_table net_cali.json --model $chip.bmodel --quiet
done
"${PYTHON:-python3}" "$here/compare.py" "$net"
