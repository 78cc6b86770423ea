// RUN: tessera-opt %s --top-quantize="precision=BF16 calibration-table=%S/Inputs/narrow_sensitive.json" | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// %a, for which run_calibration measured a large error in 8 bits, is not rounded to bf16, which is equally coarse.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = top.conv
// CHECK: %[[B:.*]] = top.conv %[[A]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[B]] {to = bf16
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]]
// CHECK: top.conv %[[F]]
func.func @main(%x: tensor<1x3x4x4xf32> {top.name = "x"}) -> (tensor<1x3x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<3x3x5x5xf32> : tensor<3x3x5x5xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  %b = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  %y = top.conv %b, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  return %y : tensor<1x3x4x4xf32>
}
