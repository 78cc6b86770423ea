// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// expected-error @below {{shape [4], allowed 2 or more dims, none negative (packing_c1)}}
func.func private @packing_c1() attributes {p = #x86.packing<matrix, f32, shape = [4], tile = 28 x 16>}

// -----

// expected-error @below {{tile of 28 x 24, allowed positive rows and a positive multiple of 16 columns (packing_c2)}}
func.func private @packing_c2_columns() attributes {p = #x86.packing<matrix, f32, shape = [4, 4], tile = 28 x 24>}

// -----

// expected-error @below {{tile of 0 x 16, allowed positive rows and a positive multiple of 16 columns (packing_c2)}}
func.func private @packing_c2_rows() attributes {p = #x86.packing<matrix, f32, shape = [4, 4], tile = 0 x 16>}

// -----

// expected-error @below {{tile of 14 x 32, allowed positive rows and 16 columns (packing_c2)}}
func.func private @packing_c2_depthwise() attributes {p = #x86.packing<depthwise, f32, shape = [4, 1, 3, 3], tile = 14 x 32>}

// -----

// expected-error @below {{output_tile is 3, allowed 2 or 4 (packing_c3)}}
func.func private @packing_c3() attributes {p = #x86.packing<winograd, f32, shape = [16, 16, 3, 3], tile = 28 x 16, output_tile = 3>}

// -----

// expected-error @below {{output_tile is 2, allowed only with winograd (packing_c3)}}
func.func private @packing_c3_other() attributes {p = #x86.packing<blocks, f32, shape = [16, 16, 3, 3], tile = 28 x 16, output_tile = 2>}

// -----

// expected-error @below {{no kernel reads f32 in the order windows (packing_c4)}}
func.func private @packing_c4() attributes {p = #x86.packing<windows, f32, shape = [16, 1, 3, 3], tile = 16 x 16>}

// -----

// expected-error @below {{scale_group is 24, allowed a multiple of 16 of i8 or i4 in the orders matrix and blocks (packing_c5)}}
func.func private @packing_c5() attributes {p = #x86.packing<matrix, i8, shape = [64, 16], tile = 28 x 16, scale_group = 24>}

// -----

// expected-error @below {{scale_group is 32, allowed a multiple of 16 of i8 or i4 in the orders matrix and blocks (packing_c5)}}
func.func private @packing_c5_floats() attributes {p = #x86.packing<matrix, f32, shape = [64, 16], tile = 28 x 16, scale_group = 32>}

// -----

// expected-error @below {{output_tile is 4, allowed only with winograd (algorithm_c1)}}
func.func private @algorithm_c1() attributes {p = #x86.algorithm<direct, output_tile = 4>}

// -----

func.func @size(%a: tensor<2x3xf32>) {
  %b = top.constant dense<1.0> : tensor<12xf32> : tensor<12xf32>
  // expected-error @below {{but they are 'tensor<12xf32>', expected 'tensor<48xf32>'}}
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, f32, shape = [3, 4], tile = 28 x 16>} : (tensor<2x3xf32>, tensor<12xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @element(%a: tensor<2x3xf32>) {
  %b = top.constant dense<1> : tensor<64xi8> : tensor<64xi8>
  // expected-error @below {{but its input has element type 'f32'}}
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, i8x4, shape = [3, 4], tile = 28 x 16>} : (tensor<2x3xf32>, tensor<64xi8>) -> tensor<2x4xf32>
  return
}

// -----

func.func @words(%a: tensor<2x3xi16>) {
  %b = top.constant dense<1> : tensor<64xi8> : tensor<64xi8>
  // expected-error @below {{but its input has element type 'i16'}}
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, i8x4, shape = [3, 4], tile = 28 x 16>} : (tensor<2x3xi16>, tensor<64xi8>) -> tensor<2x4xi32>
  // expected-error @below {{but its input has element type 'i16'}}
  %z = device.matmul %a, %b {packing = #x86.packing<matrix, i8x4, shape = [3, 4], tile = 32 x 16, chunk = 4>} : (tensor<2x3xi16>, tensor<64xi8>) -> tensor<2x4xi32>
  return
}

// -----

func.func @order(%a: tensor<2x3xf32>) {
  %b = top.constant dense<1.0> : tensor<48xf32> : tensor<48xf32>
  // expected-error @below {{but is not a convolution, so it requires the order matrix}}
  %y = device.matmul %a, %b {packing = #x86.packing<taps, f32, shape = [3, 4], tile = 28 x 16>} : (tensor<2x3xf32>, tensor<48xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matrix_order(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{but is a convolution, which requires 4 dims and an order other than matrix}}
  %y = device.conv %x, %w {packing = #x86.packing<matrix, f32, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @blocks_of_rows(%x: tensor<1x16x2x2xf32>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{but reads 'tensor<1x16x2x2xf32>', allowed channel blocks}}
  %y = device.conv %x, %w {packing = #x86.packing<blocks, f32, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @taps_of_blocks(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{allowed a row-major tensor}}
  %y = device.conv %x, %w {packing = #x86.packing<taps, f32, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @taps_apart(%x: tensor<1x16x2x2xf32>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{but has column dilation 2; orders taps and pixels require 1, order apart more than 1}}
  %y = device.conv %x, %w {packing = #x86.packing<taps, f32, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 2>} : (tensor<1x16x2x2xf32>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @winograd(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{but is not a dense 3x3 convolution of stride 1}}
  %y = device.conv %x, %w {packing = #x86.packing<winograd, f32, shape = [16, 16, 1, 1], tile = 28 x 16, output_tile = 2>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @depthwise(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{but has 1 groups of 16 to 16 channels, allowed 1 to 1}}
  %y = device.conv %x, %w {packing = #x86.packing<depthwise, f32, shape = [16, 16, 1, 1], tile = 14 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @bits(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  %w = top.constant dense<1> : tensor<256xi8> : tensor<256xi8>
  // expected-error @below {{but they are 'tensor<256xi8>', expected 'tensor<128xi8>'}}
  %y = device.conv %x, %w {packing = #x86.packing<blocks, i4, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xi8>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @elsewhere(%x: tensor<4xf32>) {
  // expected-error @below {{allowed an #x86.algorithm on a device.conv}}
  %y = device.softmax %x {axis = 0 : i64, x86.algorithm = #x86.algorithm<direct>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @twice(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  %w = top.constant dense<1.0> : tensor<256xf32> : tensor<256xf32>
  // expected-error @below {{has an algorithm beside packed weights; remove it, the packing implies the algorithm}}
  %y = device.conv %x, %w {x86.algorithm = #x86.algorithm<direct>, packing = #x86.packing<blocks, f32, shape = [16, 16, 1, 1], tile = 28 x 16>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x2x2xf32, #device.blocked<16>>, tensor<256xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

// expected-error @below {{no kernel reads bf16x2 in the order winograd (packing_c4)}}
func.func private @packing_c4_pairs() attributes {p = #x86.packing<winograd, bf16x2, shape = [16, 16, 3, 3], tile = 28 x 16, output_tile = 2>}

// -----

func.func @pairs_of_f32(%a: tensor<2x4xf32>) -> tensor<2x16xf32> {
  %b = top.constant dense<1.0> : tensor<64xbf16> : tensor<64xbf16>
  // expected-error @below {{has weights packed as #x86.packing<matrix, bf16x2, shape = [4, 16], tile = 28 x 16>, but its input has element type 'f32'}}
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, bf16x2, shape = [4, 16], tile = 28 x 16>} : (tensor<2x4xf32>, tensor<64xbf16>) -> tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}

// -----

// expected-error @below {{chunk is 68, allowed a multiple of 4 up to 64 with a tile of at most 32 x 32, for i8x4 or bf16x2 in the orders matrix, channels_last and pixels; the last two have no kernel without a chunk (packing_c6)}}
func.func private @packing_c6_long() attributes {p = #x86.packing<matrix, i8x4, shape = [128, 16], tile = 32 x 16, chunk = 68>}

// -----

// expected-error @below {{(packing_c6)}}
func.func private @packing_c6_rows() attributes {p = #x86.packing<matrix, i8x4, shape = [128, 16], tile = 33 x 16, chunk = 64>}

// -----

// expected-error @below {{(packing_c6)}}
func.func private @packing_c6_columns() attributes {p = #x86.packing<matrix, i8x4, shape = [128, 64], tile = 32 x 48, chunk = 64>}

// -----

// expected-error @below {{(packing_c6)}}
func.func private @packing_c6_order() attributes {p = #x86.packing<blocks, i8x4, shape = [16, 16, 1, 1], tile = 32 x 16, chunk = 16>}

// -----

// expected-error @below {{(packing_c6)}}
func.func private @packing_c6_step() attributes {p = #x86.packing<matrix, f32, shape = [16, 16], tile = 32 x 16, chunk = 64>}

// -----

// expected-error @below {{chunk is 0, allowed}}
func.func private @packing_c6_none() attributes {p = #x86.packing<channels_last, i8x4, shape = [16, 16, 1, 1], tile = 32 x 16>}

// -----

func.func @recurrent_c4(%x: tensor<5x1x3xf32>, %w: tensor<1x2x3xf32>, %r: tensor<32xf32>) -> tensor<5x1x1x2xf32> {
  // expected-error @below {{has both w and a packing of r, allowed at most one of them (recurrent_c4)}}
  %y, %h, %c = device.recurrent %x, %r w %w {kind = "rnn", direction = "forward", hiddenSize = 2 : i64, activations = ["Tanh"], packing = #x86.packing<matrix, f32, shape = [1, 2, 2], tile = 28 x 16>}
    : (tensor<5x1x3xf32>, tensor<32xf32>, tensor<1x2x3xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// -----

func.func @recurrent_shape(%x: tensor<5x1x2xf32>, %r: tensor<32xf32>) -> tensor<5x1x1x2xf32> {
  // expected-error @below {{but has weights of dims 1x2x2}}
  %y, %h, %c = device.recurrent %x, %r {kind = "rnn", direction = "forward", hiddenSize = 2 : i64, activations = ["Tanh"], packing = #x86.packing<matrix, f32, shape = [2, 2], tile = 28 x 16>}
    : (tensor<5x1x2xf32>, tensor<32xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// -----

func.func @recurrent_scaled(%x: tensor<5x1x2xf32>, %r: tensor<32xi8>) -> tensor<5x1x1x2xf32> {
  // expected-error @below {{but its hidden state requires float weights without a scale_group}}
  %y, %h, %c = device.recurrent %x, %r {kind = "rnn", direction = "forward", hiddenSize = 2 : i64, activations = ["Tanh"], packing = #x86.packing<matrix, i8, shape = [1, 2, 2], tile = 28 x 16>}
    : (tensor<5x1x2xf32>, tensor<32xi8>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// -----

func.func @recurrent_size(%x: tensor<5x1x2xf32>, %r: tensor<31xf32>) -> tensor<5x1x1x2xf32> {
  // expected-error @below {{they are 'tensor<31xf32>', expected 'tensor<32xf32>'}}
  %y, %h, %c = device.recurrent %x, %r {kind = "rnn", direction = "forward", hiddenSize = 2 : i64, activations = ["Tanh"], packing = #x86.packing<matrix, f32, shape = [1, 2, 2], tile = 28 x 16>}
    : (tensor<5x1x2xf32>, tensor<31xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}
