// RUN: tessera-opt %s --top-quantize="calibration-table=%S/Inputs/table.json quant-inputs quant-outputs" 2>/dev/null | FileCheck %s
// RUN: tessera-opt %s --top-quantize="calibration-table=%S/Inputs/table.json quant-inputs quant-outputs" 2>&1 | FileCheck %s --check-prefix=TOLD
// SPDX-License-Identifier: Apache-2.0

// The input that the convolution reads, and the output with a range, become i8; other readers of the input get it
// dequantised. Inputs that no op reads as integers stay f32, with a remark.
// TOLD: remark: input 'a' stays f32: nothing reads it as integers
// TOLD: remark: output 's' stays f32: it has no line in the calibration table
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x2x4x4xi8> {top.name = "x"}
// CHECK-SAME: tensor<1xf32> {top.name = "a"}
// CHECK-SAME: -> (tensor<1x2x4x4xi8> {top.name = "y"}, tensor<1x2x4x4xf32> {top.name = "s"}
// CHECK: %[[D:.*]] = top.dequantize %[[X]],
// CHECK: %[[S:.*]] = top.softmax %[[D]]
// CHECK: %[[Y:.*]] = top.conv %[[D]],
// CHECK-NOT: top.outputs
// CHECK: %[[Q:.*]] = top.quantize %[[Y]], {{.*}} {top.outputs = ["y"]
// CHECK: return %[[Q]], %[[S]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}, tensor<1x2x4x4xf32> {top.name = "s"}) {
  %s = top.softmax %x {axis = 1 : i64, top.outputs = ["s"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y, %s : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
