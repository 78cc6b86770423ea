// RUN: tessera-opt %s --top-sink-transposes --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// A graph exported from NHWC: everything between the convolutions' layouts meets its inverse.
// CHECK-LABEL: @nhwc
// CHECK-NOT: top.transpose
// CHECK: %[[B:.*]] = top.constant dense<{{.*}}> : tensor<1x3x1x1xf32>
// CHECK: %[[A:.*]] = top.add %arg0, %[[B]]
// CHECK: %[[R:.*]] = top.relu %[[A]]
// CHECK: %[[P:.*]] = top.pad %[[R]] {mode = 0 : i32, pads = array<i64: 0, 0, 1, 0, 0, 0, 0, 2>
// CHECK: %[[C:.*]] = top.concat %[[P]], %[[P]] {axis = 1 : i64
// CHECK: %[[M:.*]] = top.reduce %[[C]] {axes = array<i64: 2, 3>, kind = 1 : i32}
// CHECK: return %[[C]], %[[M]]
func.func @nhwc(%x: tensor<1x3x4x5xf32>) -> (tensor<1x6x5x7xf32>, tensor<1x6x1x1xf32>) {
  %b = top.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : tensor<3xf32>
  %0 = top.transpose %x {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x3x4x5xf32>) -> tensor<1x4x5x3xf32>
  %1 = top.add %0, %b : (tensor<1x4x5x3xf32>, tensor<3xf32>) -> tensor<1x4x5x3xf32>
  %2 = top.relu %1 : (tensor<1x4x5x3xf32>) -> tensor<1x4x5x3xf32>
  %3 = top.pad %2 {pads = array<i64: 0, 1, 0, 0, 0, 0, 2, 0>, mode = 0 : i32} : (tensor<1x4x5x3xf32>) -> tensor<1x5x7x3xf32>
  %4 = top.concat %3, %3 {axis = 3} : (tensor<1x5x7x3xf32>, tensor<1x5x7x3xf32>) -> tensor<1x5x7x6xf32>
  %5 = top.transpose %4 {perm = array<i64: 0, 3, 1, 2>} : (tensor<1x5x7x6xf32>) -> tensor<1x6x5x7xf32>
  %6 = top.reduce %5 {kind = 1 : i32, axes = array<i64: 2, 3>} : (tensor<1x6x5x7xf32>) -> tensor<1x6x1x1xf32>
  return %5, %6 : tensor<1x6x5x7xf32>, tensor<1x6x1x1xf32>
}

// -----

// Two branches with one perm join before the addition; the names stay with their tensors.
// CHECK-LABEL: @residual
// CHECK-NEXT: %[[A:.*]] = top.add %arg0, %arg1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[T:.*]] = top.transpose %[[A]] {perm = array<i64: 0, 2, 1>, top.outputs = ["sum"]}
// CHECK-NEXT: return %[[T]]
func.func @residual(%x: tensor<2x3x4xf32>, %z: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
  %0 = top.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = top.transpose %z {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %2 = top.add %0, %1 {top.outputs = ["sum"]} : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  return %2 : tensor<2x4x3xf32>
}

// -----

// The transpose stays if another op reads it, or if the other operand is not transposed.
// CHECK-LABEL: @keeps
// CHECK-NEXT: %[[T:.*]] = top.transpose %arg0
// CHECK-NEXT: %[[R:.*]] = top.relu %[[T]]
// CHECK-NEXT: %[[A:.*]] = top.add %[[R]], %arg1
// CHECK-NEXT: return %[[A]], %[[T]]
func.func @keeps(%x: tensor<2x3x4xf32>, %z: tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x4x3xf32>) {
  %0 = top.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = top.relu %0 : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %2 = top.add %1, %z : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  return %2, %0 : tensor<2x4x3xf32>, tensor<2x4x3xf32>
}

// -----

// Transposes are merged, removed or turned into reshapes; reshapes are merged.
// CHECK-LABEL: @merge
// CHECK-NEXT: %[[T:.*]] = top.transpose %arg0 {perm = array<i64: 1, 2, 0>}
// CHECK-NEXT: %[[R:.*]] = top.reshape %arg1 {shape = array<i64: 4, 5, 1>}
// CHECK-NEXT: return %[[T]], %arg0, %[[R]]
func.func @merge(%x: tensor<2x3x4xf32>, %z: tensor<1x4x5xf32>) -> (tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<4x5x1xf32>) {
  %0 = top.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = top.transpose %0 {perm = array<i64: 2, 0, 1>} : (tensor<4x2x3xf32>) -> tensor<3x4x2xf32>
  %2 = top.transpose %0 {perm = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %3 = top.reshape %z {shape = array<i64: 4, 1, 5>} : (tensor<1x4x5xf32>) -> tensor<4x1x5xf32>
  %4 = top.transpose %3 {perm = array<i64: 0, 2, 1>} : (tensor<4x1x5xf32>) -> tensor<4x5x1xf32>
  return %1, %2, %4 : tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<4x5x1xf32>
}

// -----

// Transposes become the matmul's flags; a constant is transposed immediately.
// CHECK-LABEL: @matmul
// CHECK: top.matmul %arg0, %arg1 {transA = true, transB = true}
// CHECK: %[[W:.*]] = top.constant dense<{{\[\[}}1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]>
// CHECK: top.matmul %{{.*}}, %[[W]]
func.func @matmul(%x: tensor<2x3xf32>, %z: tensor<2x2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %0 = top.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = top.transpose %z {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = top.matmul %0, %1 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %3 = top.transpose %w {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = top.matmul %2, %3 : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %2, %4 : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// The slices of a transposed q, k, v tensor: with one head, each remaining transpose is a reshape.
// CHECK-LABEL: @split
// CHECK-NOT: top.transpose
// CHECK: top.slice %arg0 {sizes = array<i64: 1, 7, 1, 1, 4>, starts = array<i64: 0, 0, 1, 0, 0>
// CHECK: return
func.func @split(%x: tensor<1x7x3x1x4xf32>) -> (tensor<1x1x1x7x4xf32>, tensor<1x1x1x7x4xf32>) {
  %0 = top.transpose %x {perm = array<i64: 2, 0, 3, 1, 4>} : (tensor<1x7x3x1x4xf32>) -> tensor<3x1x1x7x4xf32>
  %1 = top.slice %0 {starts = array<i64: 1, 0, 0, 0, 0>, sizes = array<i64: 1, 1, 1, 7, 4>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x1x1x7x4xf32>) -> tensor<1x1x1x7x4xf32>
  %2 = top.slice %0 {starts = array<i64: 2, 0, 0, 0, 0>, sizes = array<i64: 1, 1, 1, 7, 4>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x1x1x7x4xf32>) -> tensor<1x1x1x7x4xf32>
  return %1, %2 : tensor<1x1x1x7x4xf32>, tensor<1x1x1x7x4xf32>
}

// -----

// A softmax between two transposes moves to the other axis; a reduction removes dims of the perm.
// CHECK-LABEL: @softmax_reduce
// CHECK-NEXT: top.softmax %arg0 {axis = 1 : i64}
// CHECK-NEXT: top.reduce %arg0 {axes = array<i64: 1>, keepDims = false, kind = 2 : i32}
// CHECK-NEXT: return
func.func @softmax_reduce(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x4xf32>) {
  %0 = top.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = top.softmax %0 {axis = 2} : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %2 = top.transpose %1 {perm = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>
  %3 = top.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %4 = top.reduce %3 {kind = 2 : i32, axes = array<i64: 2>, keepDims = false} : (tensor<2x4x3xf32>) -> tensor<2x4xf32>
  return %2, %4 : tensor<2x3x4xf32>, tensor<2x4xf32>
}
