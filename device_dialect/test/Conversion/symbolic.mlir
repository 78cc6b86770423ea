// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --convert-top-to-device --split-input-file | FileCheck %s
// RUN: tessera-opt %s --convert-top-to-device --split-input-file | tessera-opt --split-input-file | FileCheck %s

// Lowering keeps symbolic sizes.

!x = tensor<?x3x8x8xf32, #top.dims<[batch[1:8], 3, 8, 8]>>
!y = tensor<?x4x8x8xf32, #top.dims<[batch[1:8], 4, 8, 8]>>
// CHECK-LABEL: func.func @conv
// CHECK: device.conv {{.*}}-> tensor<?x4x8x8xf32, #top.dims<[batch[1:8], 4, 8, 8]>>
// CHECK: device.map
// CHECK: } : {{.*}}-> tensor<?x4x8x8xf32, #top.dims<[batch[1:8], 4, 8, 8]>>
func.func @conv(%x: !x, %w: tensor<4x3x3x3xf32>) -> !y {
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (!x, tensor<4x3x3x3xf32>) -> !y
  %z = top.exp %y : (!y) -> !y
  return %z : !y
}

// -----

!x = tensor<?x4xf32, #top.dims<[n[0:9], 4]>>
!z = tensor<2x4xf32>
!y = tensor<?x4xf32, #top.dims<[n[0:9] + 2, 4]>>
// CHECK-LABEL: func.func @concat
// CHECK: device.copy %arg0, %arg1 {pieces = [#device.piece<source = 0, sizes = [?, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1], symbolic = [n[0:9]]>, #device.piece<source = 1, sizes = [2, 4], dst_offsets = [?, 0], {{.*}} symbolic = [n[0:9]]>]}
func.func @concat(%x: !x, %z: !z) -> !y {
  %y = top.concat %x, %z {axis = 0} : (!x, !z) -> !y
  return %y : !y
}

// -----

// The last element of a dim of unknown size.
!x = tensor<?x4xf32, #top.dims<[n[1:9], 4]>>
// CHECK-LABEL: func.func @last
// CHECK: device.copy %arg0 {{.*}} sizes = [1, 4], {{.*}} src_offsets = [?, 0], {{.*}} symbolic = [n[1:9] - 1]>
func.func @last(%x: !x) -> tensor<1x4xf32> {
  %y = top.slice %x {starts = array<i64: -1, 0>, sizes = array<i64: 1, 4>, steps = array<i64: 1, 1>, top.start_dims = #top.dims<[n[1:9] - 1, 0]>} : (!x) -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}
