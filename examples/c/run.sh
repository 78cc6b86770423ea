#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the model, builds the program with the flags of pkg-config, and runs it.
set -eu
here=$(dirname "$0")
mnist=$here/../../regression/models/mnist

model_transform --model_def "$mnist/mnist-8.onnx" --mlir mnist_top.mlir --quiet
model_deploy --mlir mnist_top.mlir --chip x86 --quantize F32 --model mnist.bmodel --quiet

# shellcheck disable=SC2046  # several words
${CC:-cc} -Wall -Wextra -o digit "$here/digit.c" $(pkg-config --cflags --libs bmrt)
tail -c 3136 "$mnist/in_Input3.npy" | ./digit mnist.bmodel   # after the header of .npy: 28 x 28 floats
