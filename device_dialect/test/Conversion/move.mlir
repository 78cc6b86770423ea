// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --convert-top-to-device | FileCheck %s

// CHECK-LABEL: func.func @transpose
// CHECK: device.copy %arg0 {{.*}}sizes = [4, 2, 3]{{.*}}src_dims = [2, 0, 1]
func.func @transpose(%x: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %y = top.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %y : tensor<4x2x3xf32>
}

// Only a dim of size 1 moves, so no bytes move.
// CHECK-LABEL: func.func @transpose_ones
// CHECK-NOT: device.copy
// CHECK: device.reshape
func.func @transpose_ones(%x: tensor<2x1x4xf32>) -> tensor<1x2x4xf32> {
  %y = top.transpose %x {perm = array<i64: 1, 0, 2>} : (tensor<2x1x4xf32>) -> tensor<1x2x4xf32>
  return %y : tensor<1x2x4xf32>
}

// CHECK-LABEL: func.func @pad_reflect
// CHECK: device.copy %arg0 {pieces = [
// CHECK-SAME: sizes = [3], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [2], src_steps = [-1]
// CHECK-SAME: sizes = [3], dst_offsets = [3], dst_steps = [1], src_dims = [0], src_offsets = [1], src_steps = [1]
// CHECK-SAME: sizes = [1], dst_offsets = [6], dst_steps = [1], src_dims = [0], src_offsets = [2], src_steps = [1]
func.func @pad_reflect(%x: tensor<4xf32>) -> tensor<7xf32> {
  %y = top.pad %x {pads = array<i64: 2, 1>, mode = 1 : i32} : (tensor<4xf32>) -> tensor<7xf32>
  return %y : tensor<7xf32>
}

// CHECK-LABEL: func.func @concat
// CHECK: device.copy %arg0, %arg1 {{.*}}source = 0{{.*}}source = 1, sizes = [2, 2], dst_offsets = [0, 3]
func.func @concat(%x: tensor<2x3xf32>, %z: tensor<2x2xf32>) -> tensor<2x5xf32> {
  %y = top.concat %x, %z {axis = 1} : (tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

// A constant index is a slice.
// CHECK-LABEL: func.func @gather_one
// CHECK: device.copy %arg0 {{.*}}src_offsets = [2, 0]
// CHECK: device.reshape %{{.*}} -> tensor<3xf32>
func.func @gather_one(%x: tensor<4x3xf32>) -> tensor<3xf32> {
  %i = top.constant dense<-2> : tensor<i64> : tensor<i64>
  %y = top.gather %x, %i {axis = 0} : (tensor<4x3xf32>, tensor<i64>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// Copies of constants are evaluated at compile time.
// CHECK-LABEL: func.func @constant
// CHECK: top.constant dense<{{\[\[}}1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]>
// CHECK-NOT: device.copy
// CHECK: return
func.func @constant() -> tensor<2x2xf32> {
  %c = top.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.transpose %c {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @resize
// CHECK: %[[I:.*]] = top.constant dense<{{\[\[}}0], [0], [1], [1]]> : tensor<4x1xi32>
// CHECK: device.resize %arg0, %[[I]], %{{.*}} {axes = array<i64: 2>}
func.func @resize(%x: tensor<1x1x2x3xf32>) -> tensor<1x1x4x3xf32> {
  %y = top.resize %x {sizes = array<i64: 1, 1, 4, 3>, scales = array<f64: 1.0, 1.0, 2.0, 1.0>, mode = 0 : i32, coord = 3 : i32, round = 2 : i32} : (tensor<1x1x2x3xf32>) -> tensor<1x1x4x3xf32>
  return %y : tensor<1x1x4x3xf32>
}
