// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-flatten-volumes --split-input-file | FileCheck %s

// The taps of a result along the depth become the channels of its frame, with zeros outside.
// CHECK-LABEL: func.func @windows
// CHECK: %[[X:.*]] = device.reshape %arg0 : {{.*}} -> tensor<1x1x2x5x4x4xf32>
// CHECK: %[[W:.*]] = device.copy %[[X]] {fill = 0.000000e+00 : f64
// CHECK-SAME: sizes = [1, 2, 1, 1, 2, 4, 4], dst_offsets = [0, 1, 0, 0, 0, 0, 0], {{.*}}src_offsets = [0, 0, 0, 1, 0, 0], src_steps = [1, 2, 1, 1, 1, 1, 1]
// CHECK-SAME: sizes = [1, 3, 1, 1, 2, 4, 4], dst_offsets = [0, 0, 0, 1, 0, 0, 0], {{.*}}src_offsets = [0, 0, 0, 0, 0, 0]
// CHECK-SAME: -> tensor<1x3x1x2x2x4x4xf32>
// CHECK: %[[F:.*]] = device.reshape %[[W]] : {{.*}} -> tensor<3x4x4x4xf32>
// CHECK: dense<{{\[\[\[\[}}1.000000e+00]], {{\[\[}}3.000000e+00]], {{\[\[}}2.000000e+00]], {{\[\[}}4.000000e+00]]]]> : tensor<1x4x1x1xf32>
// CHECK: device.conv %[[F]], %{{.*}} {dilations = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 0>, strides = array<i64: 1, 1>}
// CHECK: -> tensor<1x1x3x5x4xf32>
func.func @windows(%x: tensor<1x2x5x4x4xf32>) -> tensor<1x1x3x5x4xf32> {
  %w = top.constant dense<[[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]]> : tensor<1x2x2x1x1xf32> : tensor<1x2x2x1x1xf32>
  %y = device.conv %x, %w {strides = array<i64: 2, 1, 1>, pads = array<i64: 1, 1, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x5x4x4xf32>, tensor<1x2x2x1x1xf32>) -> tensor<1x1x3x5x4xf32>
  return %y : tensor<1x1x3x5x4xf32>
}

// -----

// The zero point of integers fills positions outside the volume.
// CHECK-LABEL: func.func @zero_point
// CHECK: device.copy %{{.*}} {fill = -7.000000e+00 : f64
func.func @zero_point(%x: tensor<1x2x5x1x4xi8>) -> tensor<1x1x5x1x2xi32> {
  %w = top.constant dense<1> : tensor<1x2x3x1x1xi8> : tensor<1x2x3x1x1xi8>
  %y = device.conv %x, %w {padValue = -7 : i64, strides = array<i64: 1, 1, 2>, pads = array<i64: 1, 0, 0, 1, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x5x1x4xi8>, tensor<1x2x3x1x1xi8>) -> tensor<1x1x5x1x2xi32>
  return %y : tensor<1x1x5x1x2xi32>
}

// -----

// For a kernel of one row and one column, the depth becomes the height; no bytes move, not even of epilogue operands.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: device.copy
// CHECK: device.conv %{{.*}}, %{{.*}} extras(%{{.*}}, %{{.*}}) epilogue
// CHECK: pads = array<i64: 1, 0, 1, 0>, strides = array<i64: 1, 1>
// CHECK-SAME: (tensor<1x2x5x16xf32>, tensor<2x2x3x1xf32>, tensor<1x2x5x16xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x5x16xf32>
// CHECK-NOT: device.copy
// CHECK: return
func.func @columns(%x: tensor<1x2x5x4x4xf32>, %s: tensor<2x1x1x1xf32>) -> tensor<1x2x5x4x4xf32> {
  %w = top.constant dense<1.0> : tensor<2x2x3x1x1xf32> : tensor<2x2x3x1x1xf32>
  %y = device.conv %x, %w extras(%x, %s) epilogue {
  ^bb0(%acc: f32, %r: f32, %m: f32):
    %0 = arith.mulf %acc, %m : f32
    %1 = arith.addf %0, %r : f32
    device.yield %1 : f32
  } {strides = array<i64: 1, 1, 1>, pads = array<i64: 1, 0, 0, 1, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x5x4x4xf32>, tensor<2x2x3x1x1xf32>, tensor<1x2x5x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x5x4x4xf32>
  return %y : tensor<1x2x5x4x4xf32>
}

// -----

// A maximum becomes one over frames and then one along the depth.
// CHECK-LABEL: func.func @maximum
// CHECK: device.pool max %{{.*}} {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 2>, pads = array<i64: 1, 0, 1, 0>, strides = array<i64: 2, 2>} : (tensor<1x10x4x4xf32>) -> tensor<1x10x2x2xf32>
// CHECK: device.pool max %{{.*}} {dilations = array<i64: 1, 1>, kernel = array<i64: 2, 1>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x2x5x4xf32>) -> tensor<1x2x4x4xf32>
func.func @maximum(%x: tensor<1x2x5x4x4xf32>) -> tensor<1x2x4x2x2xf32> {
  %y = device.pool max %x {kernel = array<i64: 2, 3, 2>, strides = array<i64: 1, 2, 2>, pads = array<i64: 0, 1, 0, 0, 1, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x5x4x4xf32>) -> tensor<1x2x4x2x2xf32>
  return %y : tensor<1x2x4x2x2xf32>
}

// -----

// Unchanged: depthwise taps along the depth, a mean, and an epilogue operand that varies along the depth.
// CHECK-LABEL: func.func @others
// CHECK: device.conv %arg0{{.*}} -> tensor<1x2x3x4x4xf32>
// CHECK: device.pool avg %arg0{{.*}} -> tensor<1x2x4x4x4xf32>
// CHECK: device.conv %arg0, %{{.*}} extras(%arg1)
func.func @others(%x: tensor<1x2x5x4x4xf32>, %d: tensor<1x1x5x1x1xf32>) -> (tensor<1x2x3x4x4xf32>, tensor<1x2x4x4x4xf32>, tensor<1x2x5x4x4xf32>) {
  %w = top.constant dense<1.0> : tensor<2x1x3x1x1xf32> : tensor<2x1x3x1x1xf32>
  %p = top.constant dense<1.0> : tensor<2x2x1x1x1xf32> : tensor<2x2x1x1x1xf32>
  %a = device.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x5x4x4xf32>, tensor<2x1x3x1x1xf32>) -> tensor<1x2x3x4x4xf32>
  %b = device.pool avg %x {kernel = array<i64: 2, 1, 1>, strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x5x4x4xf32>) -> tensor<1x2x4x4x4xf32>
  %c = device.conv %x, %p extras(%d) epilogue {
  ^bb0(%acc: f32, %m: f32):
    %0 = arith.mulf %acc, %m : f32
    device.yield %0 : f32
  } {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x5x4x4xf32>, tensor<2x2x1x1x1xf32>, tensor<1x1x5x1x1xf32>) -> tensor<1x2x5x4x4xf32>
  return %a, %b, %c : tensor<1x2x3x4x4xf32>, tensor<1x2x4x4x4xf32>, tensor<1x2x5x4x4xf32>
}
