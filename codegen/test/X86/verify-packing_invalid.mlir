// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-verify-packing --verify-diagnostics --split-input-file

func.func @not_packed(%x: tensor<1x16x2x2xf32, #device.blocked<16>>, %w: tensor<16x16x1x1xf32>) {
  // expected-error @below {{has an algorithm, but its weights are not packed}}
  %y = device.conv %x, %w {x86.algorithm = #x86.algorithm<direct>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<16x16x1x1xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @no_constant(%x: tensor<1x16x2x2xf32, #device.blocked<16>>, %w: tensor<256xf32>) {
  // expected-error @below {{packed weights are not a constant}}
  %y = device.conv %x, %w {packing = #x86.packing<blocks, f32, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @row_major_result(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{convolutions write channel blocks if and only if their weights are packed}}
  %y = device.conv %x, %w {packing = #x86.packing<blocks, f32, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32>
  return
}
