// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-fuse-epilogues --device-assign-addresses --device-verify-addresses --split-input-file | FileCheck %s

// A map becomes the epilogue of a convolution of the same symbolic sizes. Offsets
// follow from the maximum of the batch.

!x = tensor<?x3x8x8xf32, #top.dims<[batch[1:8], 3, 8, 8]>>
// CHECK-LABEL: func.func @residual
// CHECK-SAME: device.workspace_bytes = 12288
// CHECK: device.conv
// CHECK-NOT: device.map
func.func @residual(%x: !x, %w: tensor<3x3x3x3xf32>) -> !x {
  %r = device.map(%x) {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    device.yield %e : f32
  } : (!x) -> !x
  %y = device.conv %r, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (!x, tensor<3x3x3x3xf32>) -> !x
  %z = device.map(%y, %r) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    device.yield %s : f32
  } : (!x, !x) -> !x
  %v = device.conv %z, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (!x, tensor<3x3x3x3xf32>) -> !x
  return %v : !x
}

// -----

// A part of a concatenation along a symbolic dim is copied: its offset is not a number.
!x = tensor<?x4xf32, #top.dims<[n[0:9], 4]>>
!y = tensor<?x4xf32, #top.dims<[2*n[0:9], 4]>>
// CHECK-LABEL: func.func @concat
// CHECK-NOT: device.elided
func.func @concat(%x: !x) -> !y {
  %a = device.map(%x) {
  ^bb0(%e: f32):
    %r = math.exp %e : f32
    device.yield %r : f32
  } : (!x) -> !x
  %b = device.map(%a) {
  ^bb0(%e: f32):
    %r = math.exp %e : f32
    device.yield %r : f32
  } : (!x) -> !x
  %y = device.copy %a, %b {pieces = [
      #device.piece<source = 0, sizes = [?, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1], symbolic = [n[0:9]]>,
      #device.piece<source = 1, sizes = [?, 4], dst_offsets = [?, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1], symbolic = [n[0:9], n[0:9]]>]} : (!x, !x) -> !y
  return %y : !y
}
