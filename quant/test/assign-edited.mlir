// A precision that a user edits decides what is compiled.
// RUN: tessera-opt %s --assign-precision=calibration-table=%S/Inputs/table.json --mlir-print-debuginfo -o %t.mlir
// RUN: tessera-opt %t.mlir --apply-precision=calibration-table=%S/Inputs/table.json | FileCheck %s --check-prefix=INT8
// RUN: sed -e '/top.outputs = \["c"\]/s/top.precision = "INT8"/top.precision = "F32"/' %t.mlir > %t.f32.mlir
// RUN: tessera-opt %t.f32.mlir --apply-precision=calibration-table=%S/Inputs/table.json | FileCheck %s --check-prefix=F32
// RUN: sed -e '/top.outputs = \["c"\]/s/top.precision = "INT8"/top.precision = "BF16"/' %t.mlir > %t.bf16.mlir
// RUN: tessera-opt %t.bf16.mlir --apply-precision=calibration-table=%S/Inputs/table.json | FileCheck %s --check-prefix=BF16
// Deployment reads the same attributes.
// RUN: tessera-compile deploy --mlir %t.mlir --chip x86-v2 --quantize INT8 --calibration-table %S/Inputs/table.json --output %t.bmodel --device-mlir %t.device.mlir
// RUN: FileCheck %s --check-prefix=DEVICE < %t.device.mlir
// RUN: tessera-compile deploy --mlir %t.f32.mlir --chip x86-v2 --quantize INT8 --calibration-table %S/Inputs/table.json --output %t.bmodel --device-mlir %t.device.mlir
// RUN: FileCheck %s --check-prefix=EDITED < %t.device.mlir
// RUN: not tessera-compile deploy --mlir %t.mlir --chip x86-v2 --quantize BF16 --output %t.bmodel 2>&1 | FileCheck %s --check-prefix=OTHER
// SPDX-License-Identifier: Apache-2.0

// INT8: %[[X:.*]] = top.dequantize
// INT8: %[[B:.*]] = top.conv %[[X]]
// INT8: %[[Q:.*]] = top.quantize %[[B]]
// INT8: %[[D:.*]] = top.dequantize %[[Q]]
// INT8: top.conv %[[D]]
// F32: %[[X:.*]] = top.dequantize
// F32: %[[B:.*]] = top.conv %[[X]]
// F32-NOT: top.quantize %[[B]]
// F32: top.conv %[[B]]
// BF16: %[[W:.*]] = top.cast %{{.*}} {to = f32} : (tensor<2x2x1x1xbf16>) -> tensor<2x2x1x1xf32>
// BF16: top.conv %{{.*}}, %[[W]]
// DEVICE: top.outputs = ["c"]} : (tensor<1x2x4x4xi8
// EDITED: top.outputs = ["c"]} : (tensor<1x2x4x4xf32
// OTHER: the function's ops have precisions for INT8, but BF16 was requested
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %c = top.conv %b, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %y = top.softmax %c {axis = 1 : i64, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}
