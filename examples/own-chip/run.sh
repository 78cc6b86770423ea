#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A custom chip is a JSON file. How fast would it be, and does it compute the same results as every other chip?
set -eu
here=$(dirname "$0")
net=$here/../../regression/models/resnet8_cifar10

npu-describe chips "$here/npu-mine.json" >fields.txt # checks the file; an error names the wrong or missing field
model_transform --model_def "$net/resnet8_cifar10.onnx" --mlir net_top.mlir --quiet --pixel_format rgb
run_calibration net_top.mlir --dataset "$net/../mobilenetv1_0.25_128/pictures" --cali_method max --methods none -o net_cali.json --quiet
for chip in npu-edge "$here/npu-mine.json"; do
  model_deploy --mlir net_top.mlir --chip "$chip" --quantize INT8 --calibration_table net_cali.json \
      --model "$(basename "$chip" .json).bmodel" --quiet
done
"${PYTHON:-python3}" "$here/compare.py" "$net/in_input.npy"
