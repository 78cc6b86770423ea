#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles one network for two chips; one program runs both. CMake finds Tessera where it is installed
# (CMAKE_PREFIX_PATH).
set -eu
here=$(dirname "$0")
net=$here/../../regression/models/resnet8_cifar10

model_transform --model_def "$net/resnet8_cifar10.onnx" --mlir net_top.mlir --quiet
model_deploy --mlir net_top.mlir --chip x86 --quantize F32 --model x86.bmodel --quiet
model_deploy --mlir net_top.mlir --chip npu-edge --quantize F32 --model npu.bmodel --quiet

cmake -S "$here" -B build -DCMAKE_BUILD_TYPE=Release >cmake.log
cmake --build build >>cmake.log
build/classify "$net/in_input.npy" x86.bmodel npu.bmodel
