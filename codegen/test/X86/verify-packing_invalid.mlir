// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-verify-packing --verify-diagnostics --split-input-file

func.func @not_packed(%x: tensor<1x16x2x2xf32, #device.blocked<16>>, %w: tensor<16x16x1x1xf32>) {
  // expected-error @below {{algorithm 'direct' needs weights that are packed}}
  %y = device.conv %x, %w {algorithm = 1 : i32, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<16x16x1x1xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @no_constant(%x: tensor<1x16x2x2xf32, #device.blocked<16>>, %w: tensor<256xf32>) {
  // expected-error @below {{packed weights are constants and come with panelBlocks}}
  %y = device.conv %x, %w {algorithm = 1 : i32, packed, panelBlocks = 1 : i64, weightShape = array<i64: 16, 16, 1, 1>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @size(%a: tensor<2x3xf32>) {
  %b = top.constant dense<1.0> : tensor<12xf32> : tensor<12xf32>
  // expected-error @below {{packed weights have 12 elements, their order needs 48}}
  %y = device.matmul %a, %b {packed, panelBlocks = 1 : i64, weightShape = array<i64: 3, 4>} : (tensor<2x3xf32>, tensor<12xf32>) -> tensor<2x4xf32>
  return
}
