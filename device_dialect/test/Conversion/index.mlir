// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt --convert-top-to-device %s | FileCheck %s
// Known indices, and indices with only one possible value, become slices and copies.

// A mask that is read completely and in order: the gather disappears.
// CHECK-LABEL: func.func @all_tuples
// CHECK-NOT: gather
// CHECK: device.reshape %arg0
func.func @all_tuples(%x: tensor<1x4xi1>) -> tensor<1x1x1x4xi1> {
  %i = top.constant dense<[[[[[0, 0], [0, 1], [0, 2], [0, -1]]]]]> : tensor<1x1x1x4x2xi64> : tensor<1x1x1x4x2xi64>
  %y = top.gather_nd %x, %i : (tensor<1x4xi1>, tensor<1x1x1x4x2xi64>) -> tensor<1x1x1x4xi1>
  return %y : tensor<1x1x1x4xi1>
}

// The first of two indices is into a dim of one element.
// CHECK-LABEL: func.func @one_that_counts
// CHECK: %[[FLAT:.*]] = device.reshape %arg1 : (tensor<3x1x2xi64>) -> tensor<3x2xi64>
// CHECK-NOT: gather_nd
// CHECK: device.copy %{{.*}}src_offsets = [0, 1]
// CHECK: device.gather
// CHECK-SAME: (tensor<5x7xf32>, tensor<3xi64>) -> tensor<3x7xf32>
func.func @one_that_counts(%x: tensor<1x5x7xf32>, %i: tensor<3x1x2xi64>) -> tensor<3x1x7xf32> {
  %y = top.gather_nd %x, %i : (tensor<1x5x7xf32>, tensor<3x1x2xi64>) -> tensor<3x1x7xf32>
  return %y : tensor<3x1x7xf32>
}

// CHECK-LABEL: func.func @both_count
// CHECK: device.gather_nd
func.func @both_count(%x: tensor<4x5x7xf32>, %i: tensor<3x2xi64>) -> tensor<3x7xf32> {
  %y = top.gather_nd %x, %i : (tensor<4x5x7xf32>, tensor<3x2xi64>) -> tensor<3x7xf32>
  return %y : tensor<3x7xf32>
}

// Columns 1 and 2 of rows 0 and 2 are written; the other rows, and the columns before and after, are copied.
// CHECK-LABEL: func.func @box
// CHECK-NOT: scatter
// CHECK: device.copy %arg0, %arg1
// CHECK-SAME: sizes = [1, 4]
// CHECK-SAME: dst_offsets = [1, 0]
// CHECK-SAME: sizes = [2, 1]
// CHECK-SAME: source = 1
// CHECK-SAME: sizes = [2, 2], dst_offsets = [0, 1], dst_steps = [2, 1]
func.func @box(%x: tensor<3x4xf32>, %u: tensor<2x2xf32>) -> tensor<3x4xf32> {
  %i = top.constant dense<[[[0, 1], [0, 2]], [[2, 1], [2, 2]]]> : tensor<2x2x2xi64> : tensor<2x2x2xi64>
  %y = top.scatter_nd %x, %i, %u : (tensor<3x4xf32>, tensor<2x2x2xi64>, tensor<2x2xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @same_place_twice
// CHECK: device.scatter
func.func @same_place_twice(%x: tensor<3x4xf32>, %u: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %i = top.constant dense<[[1], [1]]> : tensor<2x1xi64> : tensor<2x1xi64>
  %y = top.scatter_nd %x, %i, %u : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK-NOT: scatter
// CHECK: device.copy %arg0, %arg1
func.func @rows(%x: tensor<1x8x2xf32>, %u: tensor<1x3x2xf32>) -> tensor<1x8x2xf32> {
  %i = top.constant dense<[[[3, 3], [5, 5], [7, 7]]]> : tensor<1x3x2xi64> : tensor<1x3x2xi64>
  %y = top.scatter_elements %x, %i, %u {axis = 1} : (tensor<1x8x2xf32>, tensor<1x3x2xi64>, tensor<1x3x2xf32>) -> tensor<1x8x2xf32>
  return %y : tensor<1x8x2xf32>
}

// CHECK-LABEL: func.func @diagonal
// CHECK: device.scatter
func.func @diagonal(%x: tensor<3x3xf32>, %u: tensor<1x3xf32>) -> tensor<3x3xf32> {
  %i = top.constant dense<[[0, 1, 2]]> : tensor<1x3xi64> : tensor<1x3xi64>
  %y = top.scatter_elements %x, %i, %u {axis = 0} : (tensor<3x3xf32>, tensor<1x3xi64>, tensor<1x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}
