// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/decided.json --verify-diagnostics | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// The table decides which tensors get 16 bits. Without that, 'x' would get them for its error (budget.mlir).
// CHECK-NOT: xi16
// CHECK: top.quantize %arg0, {{.*}} -> tensor<1x1x4x4xi8>
// CHECK-NOT: xi16
func.func @main(%x: tensor<1x1x4x4xf32> {top.name = "x"}) -> (tensor<1x8x3x3xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<4x1x1x1xf32> : tensor<4x1x1x1xf32>
  %v = top.constant dense<1.0> : tensor<8x4x2x2xf32> : tensor<8x4x2x2xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x1x4x4xf32>, tensor<4x1x1x1xf32>) -> tensor<1x4x4x4xf32>
  %y = top.conv %a, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x4x4x4xf32>, tensor<8x4x2x2xf32>) -> tensor<1x8x3x3xf32>
  return %y : tensor<1x8x3x3xf32>
}
