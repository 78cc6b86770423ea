#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles three networks, one after another.
set -eu
here=$(dirname "$0")
models=$here/../../regression/models

for name in mnist/mnist-8 resnet8_cifar10/resnet8_cifar10 mobilenetv1_0.25_128/mobilenetv1_0.25_128; do
  model_transform --model_def "$models/$name.onnx" --mlir net_top.mlir --quiet
  model_deploy --mlir net_top.mlir --quantize F32 --model "$(basename $name).bmodel" --quiet
done
"${PYTHON:-python3}" "$here/several.py" "$models"
