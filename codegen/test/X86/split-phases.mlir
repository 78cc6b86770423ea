// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-split-phases --split-input-file | FileCheck %s

// A row with stride 2 and three taps: even results use the middle tap, odd results the two others.
// CHECK-LABEL: func.func @rows
// CHECK: %[[A:.*]] = device.conv %arg0, %{{.*}} bias %{{.*}} epilogue
// CHECK: pads = array<i64: 0, 0, 0, 0>{{.*}} (tensor<1x1x1x4xf32>, tensor<16x1x1x2xf32>, tensor<16xf32>) -> tensor<1x16x1x3xf32>
// CHECK: %[[B:.*]] = device.conv %arg0, %{{.*}} bias %{{.*}} epilogue
// CHECK: pads = array<i64: 0, 0, 0, 0>{{.*}} (tensor<1x1x1x4xf32>, tensor<16x1x1x1xf32>, tensor<16xf32>) -> tensor<1x16x1x4xf32>
// CHECK: device.copy %[[A]], %[[B]]
func.func @rows(%x: tensor<1x1x1x4xf32>) -> tensor<1x16x1x7xf32> {
  %w = top.constant dense<"0x0000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000803F000000400000000000004040000000000000404000000000000040400000000000004040000000000000404000000000000040400000000000004040000000000000404000000000000040400000000000004040000000000000404000000000000040400000000000004040000000000000404000000000000040400000000000004040"> : tensor<32x1x1x2xf32> : tensor<32x1x1x2xf32>
  %b = top.constant dense<1.0> : tensor<32xf32> : tensor<32xf32>
  %y = device.conv %x, %w bias %b epilogue {
  ^bb0(%acc: f32):
    %z = arith.constant 0.0 : f32
    %0 = arith.maximumf %acc, %z : f32
    device.yield %0 : f32
  } {strides = array<i64: 1, 1>, pads = array<i64: 0, 1, 0, 1>, dilations = array<i64: 1, 1>} : (tensor<1x1x1x4xf32>, tensor<32x1x1x2xf32>, tensor<32xf32>) -> tensor<1x32x1x5xf32>
  %c = device.copy %y {pieces = [
    #device.piece<source = 0, sizes = [1, 16, 1, 4], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 2], src_dims = [0, 1, 2, 3], src_offsets = [0, 16, 0, 0], src_steps = [1, 1, 1, 1]>,
    #device.piece<source = 0, sizes = [1, 16, 1, 3], dst_offsets = [0, 0, 0, 1], dst_steps = [1, 1, 1, 2], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 1], src_steps = [1, 1, 1, 1]>]}
    : (tensor<1x32x1x5xf32>) -> tensor<1x16x1x7xf32>
  return %c : tensor<1x16x1x7xf32>
}
