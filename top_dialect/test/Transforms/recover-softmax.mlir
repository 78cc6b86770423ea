// RUN: tessera-opt %s --top-recover-softmax --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// CHECK-LABEL: @softmax
// CHECK-NEXT: top.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: return
func.func @softmax(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %m = top.reduce %x {kind = 2 : i32, axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %d = top.sub %x, %m : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %e = top.exp %d : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = top.reduce %e {kind = 0 : i32, axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %y = top.div %e, %s : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @log_softmax
// CHECK-NEXT: top.softmax %arg0 {axis = 0 : i64, log = true}
// CHECK-NEXT: top.softmax %arg0 {axis = 1 : i64, log = true}
// CHECK-NEXT: return
func.func @log_softmax(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = top.softmax %x {axis = 0} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = top.log %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %m = top.reduce %x {kind = 2 : i32, axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %d = top.sub %x, %m : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %e = top.exp %d : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = top.reduce %e {kind = 0 : i32, axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %l = top.log %s : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %y = top.sub %d, %l : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %1, %y : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Not a softmax: the sum over two axes, the sum of another tensor.
// CHECK-LABEL: @keeps
// CHECK-NOT: top.softmax
// CHECK: return
func.func @keeps(%x: tensor<2x4xf32>, %z: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %e = top.exp %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = top.reduce %e {kind = 0 : i32, axes = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<1x1xf32>
  %y = top.div %e, %s : (tensor<2x4xf32>, tensor<1x1xf32>) -> tensor<2x4xf32>
  %s2 = top.reduce %z {kind = 0 : i32, axes = array<i64: 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %y2 = top.div %e, %s2 : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %y, %y2 : tensor<2x4xf32>, tensor<2x4xf32>
}
