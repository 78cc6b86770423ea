// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/pieces.json | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// The state of a recurrent network has two halves: one in [-1, 1] that the matmul reads, and one that accumulates. The
// first gets its own range. The second stays float, because only elementwise ops read it and the caller gets their
// result.
// CHECK-LABEL: func.func @main
// CHECK: %[[H:.*]] = top.slice %arg0 {{.*}} -> tensor<1x4xf32>
// CHECK: top.quantize %[[H]], {{.*}} -> tensor<1x4xi8>
// CHECK: %[[C:.*]] = top.slice %arg0 {{.*}} -> tensor<1x4xf32>
// CHECK: %[[M:.*]] = top.matmul
// CHECK: %[[N:.*]] = top.add %[[C]], %[[M]]
// CHECK: %[[T:.*]] = top.tanh %[[N]]
// CHECK: top.quantize %[[T]]
// CHECK: return %[[N]]
func.func @main(%state: tensor<1x8xf32> {top.name = "state"}) -> (tensor<1x4xf32> {top.name = "n"}, tensor<1x4xf32> {top.name = "y"}) {
  %w = top.constant dense<0.5> : tensor<4x4xf32> : tensor<4x4xf32>
  %h = top.slice %state {starts = array<i64: 0, 0>, sizes = array<i64: 1, 4>, steps = array<i64: 1, 1>, top.outputs = ["h"]} : (tensor<1x8xf32>) -> tensor<1x4xf32>
  %c = top.slice %state {starts = array<i64: 0, 4>, sizes = array<i64: 1, 4>, steps = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x8xf32>) -> tensor<1x4xf32>
  %m = top.matmul %h, %w {top.outputs = ["m"]} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %n = top.add %c, %m {top.outputs = ["n"]} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %t = top.tanh %n {top.outputs = ["t"]} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %y = top.matmul %t, %w {top.outputs = ["y"]} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  return %n, %y : tensor<1x4xf32>, tensor<1x4xf32>
}
