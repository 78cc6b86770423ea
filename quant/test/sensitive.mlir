// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/sensitive.json --verify-diagnostics | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// A tensor that alone does more harm than is allowed stays float, and so does the convolution that reads it.
// CHECK: top.quantize
// CHECK: %[[A:.*]] = top.conv
// CHECK-NEXT: top.conv %[[A]]
// expected-remark @below {{'y' (top.conv) stays float: tensor 'a' alone would change the outputs by 31% in int8, allowed are 20%}}
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %y = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}
