#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's rustc is sufficient; nothing has to be downloaded.
set -eu
here=$(dirname "$0")
mnist=$here/../../regression/models/mnist

model_transform --model_def "$mnist/mnist-8.onnx" --mlir mnist_top.mlir --quiet
model_deploy --mlir mnist_top.mlir --quantize F32 --model mnist.bmodel --quiet

rustc --edition 2021 -O -L "$(pkg-config --variable=libdir bmrt)" -o digit "$here/digit.rs"
tail -c 3136 "$mnist/in_Input3.npy" | ./digit mnist.bmodel
