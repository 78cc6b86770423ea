// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-verify-layouts --verify-diagnostics --split-input-file

// expected-error @below {{an argument is 'tensor<1x16x2x2xf32, #device.blocked<16>>', allowed row-major}}
func.func @argument(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  return
}

// -----

func.func @map(%x: tensor<1x16x2x2xf32>) {
  // expected-error @below {{in another layout}}
  %y = device.map(%x) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @softmax(%x: tensor<1x16x2x2xf32>) {
  // expected-error @below {{writes 'tensor<1x16x2x2xf32, #device.blocked<16>>', but supports only row-major tensors}}
  %y = device.softmax %x {axis = 1 : i64} : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @channel_sum(%x: tensor<1x16x2x2xf32>) {
  %b = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 16, 2, 2], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  // expected-error @below {{reads 'tensor<1x16x2x2xf32, #device.blocked<16>>', but supports only row-major tensors}}
  %y = device.reduce sum %b {axes = array<i64: 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>) -> tensor<1x1x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @transposition(%x: tensor<1x16x2x3xf32>) {
  // expected-error @below {{writes 'tensor<1x16x3x2xf32, #device.blocked<16>>', but supports only row-major tensors}}
  %y = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 16, 3, 2], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 3, 2], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x16x2x3xf32>) -> tensor<1x16x3x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @rows_of_blocks(%x: tensor<1x16x2x2xf32>) {
  %b = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 16, 2, 2], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  // expected-error @below {{beside a result 'tensor<1x16x2x2xf32>', but supports only row-major there}}
  %y = device.map(%b) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<1x16x2x2xf32, #device.blocked<16>>) -> tensor<1x16x2x2xf32>
  return
}
