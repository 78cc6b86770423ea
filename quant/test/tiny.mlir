// RUN: tessera-opt %s --top-quantize="calibration-table=%S/Inputs/tiny.json" --verify-diagnostics | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Small tensors become integers with small scales. Tensors too small for integers stay float, as does a contraction
// that reads or computes one.
// CHECK: %[[S:.*]] = top.constant dense<9.99999996E-13> : tensor<f32>
// CHECK: %[[Q:.*]] = top.quantize %arg0, %[[S]]
// CHECK: %[[X:.*]] = top.dequantize %[[Q]], %[[S]]
// CHECK: %[[A:.*]] = top.conv %[[X]]
// CHECK-NEXT: %[[B:.*]] = top.conv %[[A]]
// CHECK-NEXT: %[[C:.*]] = top.conv %[[B]]
// CHECK-NEXT: return %[[C]]
// expected-remark @below {{'b' (top.conv) stays float: the largest magnitude of tensor 'b' is 1.0e-30, integers need at least 1.0e-25}}
// expected-remark @below {{'c' (top.conv) stays float: the largest magnitude of tensor 'b' is 1.0e-30, integers need at least 1.0e-25}}
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "c"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %b = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %c = top.conv %b, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %c : tensor<1x2x4x4xf32>
}
