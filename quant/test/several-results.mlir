// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/table.json | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// An op on integers reads one of several results through a move: the result is quantised and the move is on integers.
// CHECK: %[[T:.*]], %{{.*}} = top.topk
// CHECK: %[[Q:.*]] = top.quantize %[[T]]
// CHECK: top.matmul
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<4x2xf32> {top.name = "y"}) {
  %t:2 = top.topk %x {k = 2 : i64, axis = 2 : i64, top.outputs = ["a", ""]} : (tensor<1x2x4x4xf32>) -> (tensor<1x2x2x4xf32>, tensor<1x2x2x4xi64>)
  %r = top.reshape %t#0 {shape = array<i64: 4, 4>, top.outputs = ["r"]} : (tensor<1x2x2x4xf32>) -> tensor<4x4xf32>
  %w = top.constant dense<1.0> : tensor<4x2xf32> : tensor<4x2xf32>
  %y = top.matmul %r, %w {top.outputs = ["y"]} : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
