// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-simplify-copies="through-reshapes=true" --split-input-file | FileCheck %s
// RUN: tessera-opt %s --device-simplify-copies --split-input-file | FileCheck %s --check-prefix=APART

// Windows of 2 columns of a row shifted by one: a window's last column begins the next window, and column 0 ends the
// last.
// CHECK-LABEL: func.func @windows_of_shifted
// CHECK-NEXT: %[[Y:.*]] = device.copy %arg0 {pieces = [#device.piece<source = 0, sizes = [2, 1, 8192], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 0, 1], src_offsets = [1, 0], src_steps = [1, 2, 1]>, #device.piece<source = 0, sizes = [1, 1, 8192], dst_offsets = [0, 1, 0]
// CHECK-NEXT: return %[[Y]]
// APART-LABEL: func.func @windows_of_shifted
// APART-COUNT-2: device.copy
func.func @windows_of_shifted(%x: tensor<4x8192xi8>) -> tensor<2x2x8192xi8> {
  %s = device.copy %x {pieces = [#device.piece<source = 0, sizes = [3, 8192], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [1, 0], src_steps = [1, 1]>, #device.piece<source = 0, sizes = [1, 8192], dst_offsets = [3, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x8192xi8>) -> tensor<4x8192xi8>
  %r = device.reshape %s : (tensor<4x8192xi8>) -> tensor<2x2x8192xi8>
  %y = device.copy %r {pieces = [#device.piece<source = 0, sizes = [2, 2, 8192], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [1, 0, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<2x2x8192xi8>) -> tensor<2x2x8192xi8>
  return %y : tensor<2x2x8192xi8>
}

// -----

// If the shift crosses windows, the result has other dims, followed by a reshape.
// CHECK-LABEL: func.func @shifted_windows
// CHECK-NEXT: %[[C:.*]] = device.copy %arg0 {{.*}} -> tensor<2x2x8192xi8>
// CHECK-NEXT: %[[Y:.*]] = device.reshape %[[C]] : (tensor<2x2x8192xi8>) -> tensor<4x8192xi8>
// CHECK-NEXT: return %[[Y]]
func.func @shifted_windows(%x: tensor<2x2x8192xi8>) -> tensor<4x8192xi8> {
  %t = device.copy %x {pieces = [#device.piece<source = 0, sizes = [2, 2, 8192], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [1, 0, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<2x2x8192xi8>) -> tensor<2x2x8192xi8>
  %r = device.reshape %t : (tensor<2x2x8192xi8>) -> tensor<4x8192xi8>
  %y = device.copy %r {pieces = [#device.piece<source = 0, sizes = [3, 8192], dst_offsets = [1, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>, #device.piece<source = 0, sizes = [1, 8192], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [3, 0], src_steps = [1, 1]>]} : (tensor<4x8192xi8>) -> tensor<4x8192xi8>
  return %y : tensor<4x8192xi8>
}

// -----

// Not composed: with windows of 2 x 2, nine pieces instead of five cost more than copying so few bytes.
// CHECK-LABEL: func.func @small
// CHECK-COUNT-2: device.copy
func.func @small(%x: tensor<4x4x8xi8>) -> tensor<2x2x2x2x8xi8> {
  %s = device.copy %x {pieces = [#device.piece<source = 0, sizes = [3, 3, 8], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [1, 1, 0], src_steps = [1, 1, 1]>, #device.piece<source = 0, sizes = [3, 1, 8], dst_offsets = [0, 3, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [1, 0, 0], src_steps = [1, 1, 1]>, #device.piece<source = 0, sizes = [1, 3, 8], dst_offsets = [3, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 1, 0], src_steps = [1, 1, 1]>, #device.piece<source = 0, sizes = [1, 1, 8], dst_offsets = [3, 3, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<4x4x8xi8>) -> tensor<4x4x8xi8>
  %r = device.reshape %s : (tensor<4x4x8xi8>) -> tensor<2x2x2x2x8xi8>
  %y = device.copy %r {pieces = [#device.piece<source = 0, sizes = [2, 2, 2, 2, 8], dst_offsets = [0, 0, 0, 0, 0], dst_steps = [1, 1, 1, 1, 1], src_dims = [0, 2, 1, 3, 4], src_offsets = [0, 0, 0, 0, 0], src_steps = [1, 1, 1, 1, 1]>]} : (tensor<2x2x2x2x8xi8>) -> tensor<2x2x2x2x8xi8>
  return %y : tensor<2x2x2x2x8xi8>
}
