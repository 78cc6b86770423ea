// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-fold-space-to-depth --split-input-file | FileCheck %s

// Blocks of 1 x 2 pixels, second pixels first: tap 2 * k + 1 belongs to the former channel 0.
// CHECK-LABEL: func.func @pixels
// CHECK: %[[W:.*]] = top.constant dense<{{\[\[\[\[}}3, 1, 4, 2]]]]> : tensor<1x1x1x4xi8> : tensor<1x1x1x4xi8>
// CHECK: %[[Y:.*]] = device.conv %arg0, %[[W]] {dilations = array<i64: 1, 1>, padValue = 5 : i64, pads = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 4>} : (tensor<1x1x3x8xi8>, tensor<1x1x1x4xi8>) -> tensor<1x1x3x2xi32>
// CHECK-NEXT: return %[[Y]]
func.func @pixels(%x: tensor<1x1x3x8xi8>) -> tensor<1x1x3x2xi32> {
  %s = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 1], src_steps = [1, 1, 1, 2]>, #device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 1, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 2]>]} : (tensor<1x1x3x8xi8>) -> tensor<1x2x3x4xi8>
  %w = top.constant dense<[[[[1, 2]], [[3, 4]]]]> : tensor<1x2x1x2xi8> : tensor<1x2x1x2xi8>
  %y = device.conv %s, %w {padValue = 5 : i64, strides = array<i64: 1, 2>, pads = array<i64: 0, 1, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x3x4xi8>, tensor<1x2x1x2xi8>) -> tensor<1x1x3x2xi32>
  return %y : tensor<1x1x3x2xi32>
}

// -----

// Not folded: float sums have an order, one channel occurs twice, and the copy has another reader.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: device.copy
func.func @others(%f: tensor<1x1x3x8xf32>, %x: tensor<1x1x3x8xi8>) -> (tensor<1x1x3x4xf32>, tensor<1x1x3x4xi32>, tensor<1x1x3x4xi32>, tensor<1x2x3x4xi8>) {
  %s = device.copy %f {pieces = [#device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 2]>, #device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 1, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 1], src_steps = [1, 1, 1, 2]>]} : (tensor<1x1x3x8xf32>) -> tensor<1x2x3x4xf32>
  %v = top.constant dense<[[[[1.0]], [[3.0]]]]> : tensor<1x2x1x1xf32> : tensor<1x2x1x1xf32>
  %a = device.conv %s, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x3x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x3x4xf32>
  %w = top.constant dense<[[[[1]], [[3]]]]> : tensor<1x2x1x1xi8> : tensor<1x2x1x1xi8>
  %t = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 2]>, #device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 1, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 2]>]} : (tensor<1x1x3x8xi8>) -> tensor<1x2x3x4xi8>
  %b = device.conv %t, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x3x4xi8>, tensor<1x2x1x1xi8>) -> tensor<1x1x3x4xi32>
  %u = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 2]>, #device.piece<source = 0, sizes = [1, 1, 3, 4], dst_offsets = [0, 1, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 1], src_steps = [1, 1, 1, 2]>]} : (tensor<1x1x3x8xi8>) -> tensor<1x2x3x4xi8>
  %c = device.conv %u, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x3x4xi8>, tensor<1x2x1x1xi8>) -> tensor<1x1x3x4xi32>
  return %a, %b, %c, %u : tensor<1x1x3x4xf32>, tensor<1x1x3x4xi32>, tensor<1x1x3x4xi32>, tensor<1x2x3x4xi8>
}
