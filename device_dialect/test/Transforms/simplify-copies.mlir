// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-simplify-copies --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @transpose_twice
// CHECK-NEXT: return %arg0
func.func @transpose_twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = device.copy %x {pieces = [#device.piece<source = 0, sizes = [3, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [1, 0], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %b = device.copy %a {pieces = [#device.piece<source = 0, sizes = [2, 3], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [1, 0], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %b : tensor<2x3xf32>
}

// -----

// A transposition that only moves a dim of size 1 is a view.
// CHECK-LABEL: func.func @transpose_one
// CHECK-NEXT: %[[V:.*]] = device.reshape %arg0 {top.outputs = ["t"]} : (tensor<1x3x4xf32>) -> tensor<3x1x4xf32>
// CHECK-NEXT: return %[[V]]
func.func @transpose_one(%x: tensor<1x3x4xf32>) -> tensor<3x1x4xf32> {
  %a = device.copy %x {top.outputs = ["t"], pieces = [#device.piece<source = 0, sizes = [3, 1, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [1, 0, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<1x3x4xf32>) -> tensor<3x1x4xf32>
  return %a : tensor<3x1x4xf32>
}

// -----

// Slice of a concatenation: only the second part is read.
// CHECK-LABEL: func.func @slice_of_concat
// CHECK-NEXT: %[[S:.*]] = device.copy %arg1 {pieces = [#device.piece<source = 0, sizes = [2, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [1, 0], src_steps = [1, 1]>]}
// CHECK-NEXT: return %[[S]]
func.func @slice_of_concat(%x: tensor<3x4xf32>, %y: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %a = device.copy %x, %y {pieces = [#device.piece<source = 0, sizes = [3, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>, #device.piece<source = 1, sizes = [3, 4], dst_offsets = [3, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  %b = device.copy %a {pieces = [#device.piece<source = 0, sizes = [2, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [4, 0], src_steps = [1, 1]>]} : (tensor<6x4xf32>) -> tensor<2x4xf32>
  return %b : tensor<2x4xf32>
}

// -----

// Slice of a pad: the fill is kept where it is still read.
// CHECK-LABEL: func.func @slice_of_pad
// CHECK-NEXT: device.copy %arg0 {fill = 5.000000e-01 : f64, pieces = [#device.piece<source = 0, sizes = [2], dst_offsets = [1], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>]} : (tensor<4xf32>) -> tensor<3xf32>
// CHECK-NEXT: device.reshape
// CHECK-NOT: device.copy
func.func @slice_of_pad(%x: tensor<4xf32>) -> (tensor<3xf32>, tensor<1x4xf32>) {
  %a = device.copy %x {fill = 0.5, pieces = [#device.piece<source = 0, sizes = [4], dst_offsets = [1], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>]} : (tensor<4xf32>) -> tensor<6xf32>
  %b = device.copy %a {pieces = [#device.piece<source = 0, sizes = [3], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>]} : (tensor<6xf32>) -> tensor<3xf32>
  %c = device.copy %x {fill = 0.5, pieces = [#device.piece<source = 0, sizes = [4], dst_offsets = [1], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>]} : (tensor<4xf32>) -> tensor<6xf32>
  %d = device.reshape %c : (tensor<6xf32>) -> tensor<1x6xf32>
  %e = device.copy %d {pieces = [#device.piece<source = 0, sizes = [1, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 1], src_steps = [1, 1]>]} : (tensor<1x6xf32>) -> tensor<1x4xf32>
  return %b, %e : tensor<3xf32>, tensor<1x4xf32>
}

// -----

// A transposition with two users is done once.
// CHECK-LABEL: func.func @shared_transpose
// CHECK-COUNT-3: device.copy
// CHECK-NOT: device.copy
func.func @shared_transpose(%x: tensor<4x6xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %t = device.copy %x {pieces = [#device.piece<source = 0, sizes = [6, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [1, 0], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %a = device.copy %t {pieces = [#device.piece<source = 0, sizes = [3, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %b = device.copy %t {pieces = [#device.piece<source = 0, sizes = [3, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [3, 0], src_steps = [1, 1]>]} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  return %a, %b : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// Reshapes of reshapes; a blocked copy is left alone.
// CHECK-LABEL: func.func @reshapes
// CHECK: %[[R:.*]] = device.reshape %arg0 : (tensor<2x6xf32>) -> tensor<12xf32>
// CHECK: %[[L:.*]] = device.copy %arg1
// CHECK: return %[[R]], %[[L]]
func.func @reshapes(%x: tensor<2x6xf32>, %y: tensor<1x8x2x2xf32>) -> (tensor<12xf32>, tensor<1x8x2x2xf32, #device.blocked<16>>) {
  %a = device.reshape %x : (tensor<2x6xf32>) -> tensor<3x4xf32>
  %b = device.reshape %a : (tensor<3x4xf32>) -> tensor<12xf32>
  %c = device.copy %y {pieces = [#device.piece<source = 0, sizes = [1, 8, 2, 2], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x8x2x2xf32>) -> tensor<1x8x2x2xf32, #device.blocked<16>>
  return %b, %c : tensor<12xf32>, tensor<1x8x2x2xf32, #device.blocked<16>>
}
