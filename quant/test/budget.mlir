// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/budget.json --verify-diagnostics | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Both tensors cause some error in 8 bits. 95 % of the multiplications read the worse one, which is too many for 16
// bits. Less than a tenth reads the other one.
// CHECK: top.quantize %arg0, {{.*}} -> tensor<1x1x4x4xi16>
// CHECK: top.conv
// CHECK: top.quantize {{.*}} -> tensor<1x4x4x4xi8>
// CHECK: top.conv
// expected-remark @below {{'a' (top.conv) reads i16: tensor 'x' alone would change the outputs by 10.0% in int8, and int16 costs little here}}
func.func @main(%x: tensor<1x1x4x4xf32> {top.name = "x"}) -> (tensor<1x8x3x3xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<4x1x1x1xf32> : tensor<4x1x1x1xf32>
  %v = top.constant dense<1.0> : tensor<8x4x2x2xf32> : tensor<8x4x2x2xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x1x4x4xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x4x4xf32>
  %y = top.conv %a, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x4x4x4xf32>, tensor<8x4x2x2xf32>) -> tensor<1x8x3x3xf32>
  return %y : tensor<1x8x3x3xf32>
}
