// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/float_lines.json --verify-diagnostics | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// A tensor with dtype float32 in the table, and a reshape of it, stay float. The convolution that computes it still
// multiplies integers; the one that reads it multiplies floats. Ops after that are quantised as usual.
// CHECK: %[[Q:.*]] = top.quantize %arg0
// CHECK: %[[X:.*]] = top.dequantize %[[Q]]
// CHECK: %[[A:.*]] = top.matmul %[[X]]
// CHECK: %[[R:.*]] = top.reshape %[[A]]
// CHECK: %[[B:.*]] = top.matmul %[[R]]
// CHECK: %[[QB:.*]] = top.quantize %[[B]]
// CHECK: %[[DB:.*]] = top.dequantize %[[QB]]
// CHECK: top.matmul %[[DB]]
// expected-remark @+2 {{'r' (top.reshape) stays float: the calibration table says float32 for tensor 'a'}}
// expected-remark @+1 {{'b' (top.matmul) stays float: the calibration table says float32 for tensor 'r'}}
func.func @main(%x: tensor<1x4xf32> {top.name = "x"}) -> (tensor<4x1xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<4x4xf32> : tensor<4x4xf32>
  %v = top.constant dense<1.0> : tensor<1x1xf32> : tensor<1x1xf32>
  %a = top.matmul %x, %w {top.outputs = ["a"]} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %r = top.reshape %a {shape = array<i64: 4, 1>, top.outputs = ["r"]} : (tensor<1x4xf32>) -> tensor<4x1xf32>
  %b = top.matmul %r, %v {top.outputs = ["b"]} : (tensor<4x1xf32>, tensor<1x1xf32>) -> tensor<4x1xf32>
  %y = top.matmul %b, %v {top.outputs = ["y"]} : (tensor<4x1xf32>, tensor<1x1xf32>) -> tensor<4x1xf32>
  return %y : tensor<4x1xf32>
}
