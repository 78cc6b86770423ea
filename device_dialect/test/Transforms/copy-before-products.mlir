// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-copy-before-products --split-input-file | FileCheck %s

// CHECK-LABEL: @windows
// CHECK: %[[ROWS:.*]] = device.reshape %arg0 : (tensor<4x9x8xi8>) -> tensor<2x2x3x3x8xi8>
// CHECK: %[[MOVED:.*]] = device.copy %[[ROWS]] {{.*}}sizes = [2, 3, 2, 3, 8]{{.*}} : (tensor<2x2x3x3x8xi8>) -> tensor<2x3x2x3x8xi8>
// CHECK: %[[PICTURE:.*]] = device.reshape %[[MOVED]] : (tensor<2x3x2x3x8xi8>) -> tensor<1x36x8xi8>
// CHECK: %[[Y:.*]] = device.matmul %[[PICTURE]], %arg1 : (tensor<1x36x8xi8>, tensor<8x6xi8>) -> tensor<1x36x6xi32>
// CHECK: return %[[Y]]
func.func @windows(%arg0: tensor<4x9x8xi8>, %arg1: tensor<8x6xi8>) -> tensor<1x36x6xi32> {
  %0 = device.matmul %arg0, %arg1 : (tensor<4x9x8xi8>, tensor<8x6xi8>) -> tensor<4x9x6xi32>
  %1 = device.reshape %0 : (tensor<4x9x6xi32>) -> tensor<2x2x3x3x6xi32>
  %2 = device.copy %1 {pieces = [#device.piece<source = 0, sizes = [2, 3, 2, 3, 6], dst_offsets = [0, 0, 0, 0, 0], dst_steps = [1, 1, 1, 1, 1], src_dims = [0, 2, 1, 3, 4], src_offsets = [0, 0, 0, 0, 0], src_steps = [1, 1, 1, 1, 1]>]} : (tensor<2x2x3x3x6xi32>) -> tensor<2x3x2x3x6xi32>
  %3 = device.reshape %2 : (tensor<2x3x2x3x6xi32>) -> tensor<1x36x6xi32>
  return %3 : tensor<1x36x6xi32>
}

// -----

// Not moved: the copy also moves columns.
// CHECK-LABEL: @heads
// CHECK: device.matmul %arg0
// CHECK: device.copy
func.func @heads(%arg0: tensor<1x9x8xi8>, %arg1: tensor<8x6xi8>) -> tensor<1x2x9x3xi32> {
  %0 = device.matmul %arg0, %arg1 : (tensor<1x9x8xi8>, tensor<8x6xi8>) -> tensor<1x9x6xi32>
  %1 = device.reshape %0 : (tensor<1x9x6xi32>) -> tensor<1x9x2x3xi32>
  %2 = device.copy %1 {pieces = [#device.piece<source = 0, sizes = [1, 2, 9, 3], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 1, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x9x2x3xi32>) -> tensor<1x2x9x3xi32>
  return %2 : tensor<1x2x9x3xi32>
}

// -----

// Not moved: the rows of the operand have more bytes.
// CHECK-LABEL: @wide
// CHECK: device.matmul %arg0
// CHECK: device.copy
func.func @wide(%arg0: tensor<4x9x80xi8>, %arg1: tensor<80x6xi8>) -> tensor<9x4x6xi32> {
  %0 = device.matmul %arg0, %arg1 : (tensor<4x9x80xi8>, tensor<80x6xi8>) -> tensor<4x9x6xi32>
  %1 = device.copy %0 {pieces = [#device.piece<source = 0, sizes = [9, 4, 6], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [1, 0, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<4x9x6xi32>) -> tensor<9x4x6xi32>
  return %1 : tensor<9x4x6xi32>
}

// -----

// Not moved: another op reads the rows in their old order.
// CHECK-LABEL: @shared
// CHECK: device.matmul %arg0
func.func @shared(%arg0: tensor<4x9x8xi8>, %arg1: tensor<8x6xi8>) -> (tensor<4x9x6xi32>, tensor<9x4x6xi32>) {
  %0 = device.matmul %arg0, %arg1 : (tensor<4x9x8xi8>, tensor<8x6xi8>) -> tensor<4x9x6xi32>
  %1 = device.copy %0 {pieces = [#device.piece<source = 0, sizes = [9, 4, 6], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [1, 0, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<4x9x6xi32>) -> tensor<9x4x6xi32>
  return %0, %1 : tensor<4x9x6xi32>, tensor<9x4x6xi32>
}

// -----

// Not moved: repeated rows would be multiplied several times.
// CHECK-LABEL: @repeated
// CHECK: device.matmul %arg0
// CHECK: device.copy
func.func @repeated(%arg0: tensor<1x8xi8>, %arg1: tensor<8x6xi8>) -> tensor<9x6xi32> {
  %0 = device.matmul %arg0, %arg1 : (tensor<1x8xi8>, tensor<8x6xi8>) -> tensor<1x6xi32>
  %1 = device.copy %0 {pieces = [#device.piece<source = 0, sizes = [9, 6], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [-1, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<1x6xi32>) -> tensor<9x6xi32>
  return %1 : tensor<9x6xi32>
}

// -----

// Not moved: the added operand has more dims than the moved rows.
// CHECK-LABEL: @rank
// CHECK: device.matmul %arg0
// CHECK: device.copy
func.func @rank(%arg0: tensor<4x9x8xi8>, %arg1: tensor<8x6xi8>, %arg2: tensor<1x1x6xf32>) -> tensor<36x6xf32> {
  %0 = device.matmul %arg0, %arg1 extras(%arg2) epilogue {
  ^bb0(%s: i32, %e: f32):
    %f = arith.sitofp %s : i32 to f32
    %g = arith.addf %f, %e : f32
    device.yield %g : f32
  } : (tensor<4x9x8xi8>, tensor<8x6xi8>, tensor<1x1x6xf32>) -> tensor<4x9x6xf32>
  %1 = device.copy %0 {pieces = [#device.piece<source = 0, sizes = [9, 4, 6], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [1, 0, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<4x9x6xf32>) -> tensor<9x4x6xf32>
  %2 = device.reshape %1 : (tensor<9x4x6xf32>) -> tensor<36x6xf32>
  return %2 : tensor<36x6xf32>
}
