// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-verify-kernel-layouts --verify-diagnostics --split-input-file

func.func @block_size(%x: tensor<1x16x2x2xf32>) {
  // expected-error @below {{channel blocks of 8, allowed 16}}
  %y = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 16, 2, 2], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #device.blocked<8>>
  return
}

// -----

func.func @generic_conv(%x: tensor<1x16x2x2xf32>, %w: tensor<16x16x1x1xf32>) {
  // expected-error @below {{convolutions write channel blocks if and only if they have an algorithm}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @depthwise_input(%x: tensor<1x16x2x2xf32>, %w: tensor<16x1x1x1xf32>) {
  // expected-error @below {{algorithm 'depthwise' reads channel blocks, but the operand is 'tensor<1x16x2x2xf32>'}}
  %y = device.conv %x, %w {x86.algorithm = #x86.algorithm<depthwise>, groups = 16, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32>, tensor<16x1x1x1xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}
