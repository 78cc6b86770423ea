// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --npu-early-results="chip=npu-pro" | FileCheck %s
// RUN: tessera-opt %s --npu-early-results="chip=npu-edge" | FileCheck %s --check-prefix=EDGE

// The ops that compute the largest part move behind the only op whose result they read, in front of the ops for the
// next largest part. A constant with several readers moves along. A small part stays in place. On a chip without enough
// local memory nothing moves.
// CHECK-LABEL: func.func @heads
// CHECK: %[[X:.*]] = device.pool max %arg0
// CHECK: %[[V:.*]] = top.constant dense<5>
// CHECK: %[[W:.*]] = top.constant dense<3>
// CHECK: %[[T:.*]] = device.conv %[[X]], %[[W]]
// CHECK: %[[L:.*]] = device.map(%[[T]])
// CHECK: %[[M:.*]] = device.conv %[[X]], %[[V]]
// CHECK: %[[D:.*]] = device.pool max %[[X]]
// CHECK: %[[S:.*]] = device.conv %[[D]], %[[W]]
// CHECK: device.copy %[[M]], %[[L]]
// CHECK: return %[[S]]
// EDGE-LABEL: func.func @heads
// EDGE: %[[X:.*]] = device.pool max %arg0
// EDGE: %[[D:.*]] = device.pool max %[[X]]
// EDGE: device.conv %[[D]]
// EDGE: device.conv %[[X]]
// EDGE: %[[T:.*]] = device.conv %[[X]]
// EDGE: device.map(%[[T]])
func.func @heads(%arg0: tensor<1x4x64x64xi8>) -> (tensor<1x16x32x32xi32>, tensor<1x24x64x64xi32>) {
  %x = device.pool max %arg0 {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x4x64x64xi8>) -> tensor<1x4x64x64xi8>
  %d = device.pool max %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x64x64xi8>) -> tensor<1x4x32x32xi8>
  %w = top.constant dense<3> : tensor<16x4x1x1xi8> : tensor<16x4x1x1xi8>
  %v = top.constant dense<5> : tensor<8x4x1x1xi8> : tensor<8x4x1x1xi8>
  %s = device.conv %d, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x32x32xi8>, tensor<16x4x1x1xi8>) -> tensor<1x16x32x32xi32>
  %m = device.conv %x, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x64x64xi8>, tensor<8x4x1x1xi8>) -> tensor<1x8x64x64xi32>
  %t = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x64x64xi8>, tensor<16x4x1x1xi8>) -> tensor<1x16x64x64xi32>
  %l = device.map(%t) {
  ^bb0(%e: i32):
    device.yield %e : i32
  } : (tensor<1x16x64x64xi32>) -> tensor<1x16x64x64xi32>
  %y = device.copy %m, %l {pieces = [
    #device.piece<source = 0, sizes = [1, 8, 64, 64], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>,
    #device.piece<source = 1, sizes = [1, 16, 64, 64], dst_offsets = [0, 8, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x8x64x64xi32>, tensor<1x16x64x64xi32>) -> tensor<1x24x64x64xi32>
  return %s, %y : tensor<1x16x32x32xi32>, tensor<1x24x64x64xi32>
}
