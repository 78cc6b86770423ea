// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-conv-to-matmul --split-input-file | FileCheck %s

// The matmul multiplies the weights by the windows; the epilogue first adds the bias.
// CHECK-LABEL: func.func @windows
// CHECK: %[[B:.*]] = device.reshape %arg2 : (tensor<3xf32>) -> tensor<1x1x3x1xf32>
// CHECK: %[[A:.*]] = device.reshape %arg1 : {{.*}} -> tensor<1x1x3x8xf32>
// CHECK: %[[P:.*]] = device.copy %arg0 {fill = 0.000000e+00 : f64
// CHECK-SAME: -> tensor<1x2x2x2x5x4xf32>
// CHECK: %[[X:.*]] = device.reshape %[[P]] : {{.*}} -> tensor<1x1x8x20xf32>
// CHECK: device.matmul %[[A]], %[[X]] extras(%[[B]]) epilogue
// CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32, %[[BIAS:.*]]: f32)
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[SUM]], %[[BIAS]] : f32
// CHECK-NEXT: device.yield %[[Y]] : f32
func.func @windows(%x: tensor<1x2x5x5xf32>, %w: tensor<3x2x2x2xf32>, %b: tensor<3xf32>) -> tensor<1x3x5x4xf32> {
  %y = device.conv %x, %w bias %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x5x5xf32>, tensor<3x2x2x2xf32>, tensor<3xf32>) -> tensor<1x3x5x4xf32>
  return %y : tensor<1x3x5x4xf32>
}

// -----

// A single tap that reads every position uses the input in place; groups are separate matrices.
// CHECK-LABEL: func.func @pointwise
// CHECK-NOT: device.copy
// CHECK: device.matmul %{{.*}}, %{{.*}} : (tensor<1x2x3x4xf32>, tensor<2x2x4x25xf32>) -> tensor<2x2x3x25xf32>
func.func @pointwise(%x: tensor<2x8x5x5xf32>, %w: tensor<6x4x1x1xf32>) -> tensor<2x6x5x5xf32> {
  %y = device.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x8x5x5xf32>, tensor<6x4x1x1xf32>) -> tensor<2x6x5x5xf32>
  return %y : tensor<2x6x5x5xf32>
}

// -----

// There are as many results as input positions, but some are padding, so the input itself cannot be used.
// CHECK-LABEL: func.func @padded
// CHECK: device.copy %arg0 {fill = 0.000000e+00 : f64
// CHECK: device.matmul
func.func @padded(%x: tensor<1x2x3x3xf32>, %w: tensor<3x2x1x1xf32>) -> tensor<1x3x3x3xf32> {
  %y = device.conv %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x2x3x3xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x3x3xf32>
  return %y : tensor<1x3x3x3xf32>
}

// -----

// Convolutions with constant weights and depthwise convolutions are unchanged.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: device.conv
// CHECK-NOT: device.matmul
func.func @others(%x: tensor<1x2x5x5xf32>, %w: tensor<2x1x1x1xf32>) -> (tensor<1x3x5x5xf32>, tensor<1x2x5x5xf32>) {
  %c = top.constant dense<1.0> : tensor<3x2x1x1xf32> : tensor<3x2x1x1xf32>
  %a = device.conv %x, %c {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x5x5xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x5x5xf32>
  %b = device.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x5x5xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x5x5xf32>
  return %a, %b : tensor<1x3x5x5xf32>, tensor<1x2x5x5xf32>
}
