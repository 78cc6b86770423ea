// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-assign-layouts --split-input-file | FileCheck %s

// A packed convolution writes channel blocks; a few channels are read from a row-major image. The function's result is
// row-major.
// CHECK-LABEL: func.func @image
// CHECK: %[[C:.*]] = device.conv %arg0, %{{.*}} {dilations = {{.*}}x86.algorithm = #x86.algorithm<direct>}
// CHECK-SAME: (tensor<1x3x8x8xf32>, {{.*}}) -> tensor<1x16x8x8xf32, #device.blocked<16>>
// CHECK: %[[Y:.*]] = device.copy %[[C]] {{.*}} -> tensor<1x16x8x8xf32>{{$}}
// CHECK: return %[[Y]]
func.func @image(%x: tensor<1x3x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = top.constant dense<0.5> : tensor<16x3x1x1xf32> : tensor<16x3x1x1xf32>
  %c = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  return %c : tensor<1x16x8x8xf32>
}

// -----

// Ops between two convolutions take their layout: one copy in, one copy out.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-1: device.copy
// CHECK: device.conv {{.*}}x86.algorithm = #x86.algorithm<depthwise>
// CHECK: device.map
// CHECK: -> tensor<1x16x8x8xf32, #device.blocked<16>>
// CHECK-NOT: device.copy
// CHECK: device.conv {{.*}}x86.algorithm = #x86.algorithm<depthwise>
// CHECK-COUNT-1: device.copy
// CHECK-NOT: device.copy
func.func @chain(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %w = top.constant dense<0.5> : tensor<16x1x3x3xf32> : tensor<16x1x3x3xf32>
  %c = device.conv %x, %w {groups = 16 : i64, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x8x8xf32>
  %m = device.map(%c, %c) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    device.yield %s : f32
  } : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %d = device.conv %m, %w {groups = 16 : i64, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x8x8xf32>
  return %d : tensor<1x16x8x8xf32>
}

// -----

// A growing resize whose result is not needed in blocks is row-major: its small input is converted.
// CHECK-LABEL: func.func @resize_out
// CHECK: device.conv
// CHECK: %[[X:.*]] = device.copy {{.*}} -> tensor<1x16x4x4xf32>{{$}}
// CHECK: %[[Y:.*]] = device.resize %[[X]]{{.*}} -> tensor<1x16x8x8xf32>{{$}}
// CHECK-NEXT: return %[[Y]]
func.func @resize_out(%x: tensor<1x16x4x4xf32>) -> tensor<1x16x8x8xf32> {
  %w = top.constant dense<0.5> : tensor<16x1x3x3xf32> : tensor<16x1x3x3xf32>
  %i = top.constant dense<0> : tensor<8x1xi32> : tensor<8x1xi32>
  %f = top.constant dense<1.0> : tensor<8x1xf32> : tensor<8x1xf32>
  %c = device.conv %x, %w {groups = 16 : i64, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x16x4x4xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x4x4xf32>
  %y = device.resize %c, %i, %f, %i, %f {axes = array<i64: 2, 3>} : (tensor<1x16x4x4xf32>, tensor<8x1xi32>, tensor<8x1xf32>, tensor<8x1xi32>, tensor<8x1xf32>) -> tensor<1x16x8x8xf32>
  return %y : tensor<1x16x8x8xf32>
}

// -----

// Groups too narrow for a block are merged, with zeros between them.
// CHECK-LABEL: func.func @groups
// CHECK: device.conv
// CHECK-NOT: groups
// CHECK-SAME: tensor<16x16x1x1xf32>) -> tensor<1x16x4x4xf32, #device.blocked<16>>
func.func @groups(%x: tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32> {
  %w = top.constant dense<0.5> : tensor<16x4x1x1xf32> : tensor<16x4x1x1xf32>
  %c = device.conv %x, %w {groups = 4 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x4x4xf32>, tensor<16x4x1x1xf32>) -> tensor<1x16x4x4xf32>
  return %c : tensor<1x16x4x4xf32>
}

// -----

// Weights that are not constant cannot be packed: everything stays row-major.
// CHECK-LABEL: func.func @open_weights
// CHECK-NEXT: %[[Y:.*]] = device.conv %arg0, %arg1
// CHECK-NOT: algorithm
// CHECK-SAME: -> tensor<1x16x4x4xf32>{{$}}
// CHECK-NEXT: return %[[Y]]
func.func @open_weights(%x: tensor<1x16x4x4xf32>, %w: tensor<16x16x1x1xf32>) -> tensor<1x16x4x4xf32> {
  %c = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x4x4xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x4x4xf32>
  return %c : tensor<1x16x4x4xf32>
}
