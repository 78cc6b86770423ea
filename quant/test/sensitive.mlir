// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/sensitive.json --verify-diagnostics | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// A tensor whose error alone exceeds the limit gets 16 bits and twice its largest value as range. Sums of two weights
// leave it all levels.
// CHECK: top.conv
// CHECK: %[[S:.*]] = top.constant dense<0.0078127{{[0-9]*}}> : tensor<f32>
// CHECK: %[[Z:.*]] = top.constant dense<0> : tensor<i16>
// CHECK: %[[Q:.*]] = top.quantize %{{.*}}, %[[S]], %[[Z]] {levels = 32767 : i64
// CHECK: %[[D:.*]] = top.dequantize %[[Q]], %[[S]], %[[Z]] {levels = 32767 : i64}
// CHECK: top.conv %[[D]]
// expected-remark @below {{'y' (top.conv) reads i16: tensor 'a' alone would change the outputs by 31% in int8; at most 20% is allowed}}
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %y = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}
