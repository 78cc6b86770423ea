// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// expected-error @below {{40x32 sums for 1x1 warps, allowed for each a multiple of 16 rows up to 64 and 16, 32 or 64 columns (tile_c1)}}
func.func @tile_c1() attributes {a = #cuda.tile<40 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 2>} { return }

// -----

// expected-error @below {{k_bytes = 64 for 4 warps along K, allowed 32, 64, 128 or 256 and a multiple of 32 for each (tile_c2)}}
func.func @tile_c2() attributes {a = #cuda.tile<64 x 32, k_bytes = 64, warps = 1 x 1 x 4, stages = 2>} { return }

// -----

// expected-error @below {{warps = 4x4x2, allowed positive numbers and 16 in all (tile_c3)}}
func.func @tile_c3() attributes {a = #cuda.tile<64 x 64, k_bytes = 64, warps = 4 x 4 x 2, stages = 2>} { return }

// -----

// expected-error @below {{stages = 4 with 65536 bytes of shared memory, allowed 2 to 8 and 49152 bytes (tile_c4)}}
func.func @tile_c4() attributes {a = #cuda.tile<128 x 128, k_bytes = 64, warps = 2 x 2 x 1, stages = 4>} { return }

// -----

// expected-error @below {{16x64 sums, allowed multiples of the 32 rows of k_bytes that all threads copy at once (tile_c5)}}
func.func @tile_c5() attributes {a = #cuda.tile<16 x 64, k_bytes = 64, warps = 1 x 2 x 2, stages = 2>} { return }

// -----

// expected-error @below {{split_k = 65, allowed 1 to 64 blocks for a tile (tile_c7)}}
func.func @tile_c7() attributes {a = #cuda.tile<16 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 4, split_k = 65>} { return }

// -----

// expected-error @below {{columns = 3, allowed 2 or 4 (gemv_c1)}}
func.func @gemv_c1() attributes {a = #cuda.gemv<columns = 3, warps = 4 x 1>} { return }

// -----

// expected-error @below {{warps = 4x4, allowed 1 to 8 in all (gemv_c2)}}
func.func @gemv_c2() attributes {a = #cuda.gemv<columns = 2, warps = 4 x 4>} { return }

// -----

func.func @gemv_c3(%x: tensor<9x256xf32>) -> tensor<9x2xf32> {
  %w = top.constant dense<1> : tensor<256x2xi8> : tensor<256x2xi8>
  // expected-error @below {{allowed a #cuda.gemv on a device.matmul of at most 8 rows of f32}}
  %y = device.matmul %x, %w {cuda.gemv = #cuda.gemv<columns = 2, warps = 4 x 1>} : (tensor<9x256xf32>, tensor<256x2xi8>) -> tensor<9x2xf32>
  return %y : tensor<9x2xf32>
}

// -----

func.func @bytes_without_gemv(%x: tensor<2x256xf32>) -> tensor<2x2xf32> {
  %w = top.constant dense<1> : tensor<2x256xi8> : tensor<2x256xi8>
  // expected-error @below {{only matmuls with cuda.gemv read that order}}
  %y = device.matmul %x, %w {packing = #cuda.packing<bytes, shape = [256, 2]>} : (tensor<2x256xf32>, tensor<2x256xi8>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// expected-error @below {{group = 32, allowed 0, or a positive number for bytes and nibbles (packing_c2)}}
func.func @packing_c2() attributes {a = #cuda.packing<rows, shape = [4, 4], group = 32>} { return }

// -----

// expected-error @below {{shape [4], allowed 2 or more dims, none negative (packing_c1)}}
func.func @packing_c1() attributes {a = #cuda.packing<rows, shape = [4]>} { return }

// -----

// expected-error @below {{warps = 3, allowed 1, 2 or 4 (attention_tile_c1)}}
func.func @attention_tile_c1() attributes {a = #cuda.attention<warps = 3, keys = 32>} { return }

// -----

// expected-error @below {{keys = 48, allowed 32 or 64 (attention_tile_c2)}}
func.func @attention_tile_c2() attributes {a = #cuda.attention<warps = 1, keys = 48>} { return }

// -----

func.func @wide_attention(%q: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
  // expected-error @+1 {{allowed a #cuda.attention on a device.attention of f16 or bf16 whose order of sums is not specified}}
  %y = device.attention %q, %q, %q {scale = 1.0, cuda.attention = #cuda.attention<warps = 1, keys = 32>} : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  return %y : tensor<2x16x8xf32>
}

// -----

func.func @no_product(%x: tensor<4xi8>) -> tensor<4xi8> {
  // expected-error @below {{allowed a #cuda.tile on a device.conv or device.matmul}}
  %y = device.softmax %x {axis = 0 : i64, cuda.tile = #cuda.tile<16 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 4>} : (tensor<4xi8>) -> tensor<4xi8>
  return %y : tensor<4xi8>
}

// -----

func.func @not_theirs(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> attributes {device.exact} {
  // expected-error @below {{has cuda.tile, allowed on convolutions and matmuls of bytes, and of f32, f16 or bf16 if the order of sums is not specified}}
  %y = device.matmul %x, %w {cuda.tile = #cuda.tile<16 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 4>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func @tile_c6(%x: tensor<4x8xf16>, %w: tensor<8x4xf16>) -> tensor<4x4xf32> {
  // expected-error @below {{has a tile with tf32, allowed on ops with an f32 left operand (tile_c6)}}
  %y = device.matmul %x, %w {cuda.tile = #cuda.tile<16 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 4, tf32 = true>} : (tensor<4x8xf16>, tensor<8x4xf16>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func @too_short(%x: tensor<4x17xi8>) -> tensor<4x2xi32> {
  %w = top.constant dense<1> : tensor<2x17xi8> : tensor<2x17xi8>
  // expected-error @below {{has #cuda.packing<rows, shape = [17, 2]>, but its weights are 'tensor<2x17xi8>', expected 'tensor<2x32xi8>'}}
  %y = device.matmul %x, %w {packing = #cuda.packing<rows, shape = [17, 2]>} : (tensor<4x17xi8>, tensor<2x17xi8>) -> tensor<4x2xi32>
  return %y : tensor<4x2xi32>
}

// -----

func.func @taps_of_rows(%x: tensor<1x2x4x4xi8>) -> tensor<1x1x4x4xi32> {
  %w = top.constant dense<1> : tensor<1x32xi8> : tensor<1x32xi8>
  // expected-error @below {{but only convolutions of channel-blocked tensors read that order}}
  %y = device.conv %x, %w {packing = #cuda.packing<taps, shape = [1, 2, 1, 1]>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xi8>, tensor<1x32xi8>) -> tensor<1x1x4x4xi32>
  return %y : tensor<1x1x4x4xi32>
}

// -----

func.func @candidates(%x: tensor<32x64xf16>, %w: tensor<64x32xf16>) -> tensor<32x32xf32> {
  // expected-error @+1 {{has cuda.candidates = ["128 x 128"], allowed a list of #cuda.tile on an op that supports cuda.tile}}
  %y = device.matmul %x, %w {cuda.candidates = ["128 x 128"]} : (tensor<32x64xf16>, tensor<64x32xf16>) -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

// -----

func.func @odd_scales(%x: tensor<16x8xf32>) -> tensor<16x4xf32> {
  %w = top.constant dense<1> : tensor<8x4xi8> : tensor<8x4xi8>
  %s = top.constant dense<0.5> : tensor<4x4xf32> : tensor<4x4xf32>
  // expected-error @below {{weights narrower than an f32 input must be constant 8- or 16-bit weights of one matrix whose scales are equal for every four elements of K}}
  %y = device.matmul %x, %w scales %s {weightGroup = 2 : i64, cuda.tile = #cuda.tile<16 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 4>} : (tensor<16x8xf32>, tensor<8x4xi8>, tensor<4x4xf32>) -> tensor<16x4xf32>
  return %y : tensor<16x4xf32>
}

// -----

func.func @product(%x: tensor<32x64xf16>, %w: tensor<64x32xf16>) -> tensor<32x32xf32> {
  // expected-error @+1 {{has cuda.product = "3f", allowed a string on an op with cuda.tile}}
  %y = device.matmul %x, %w {cuda.product = "3f"} : (tensor<32x64xf16>, tensor<64x32xf16>) -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

// -----

func.func @half_words(%x: tensor<1x4x4x4xi8>) -> tensor<1x4x4x4xi32> {
  %w = top.constant dense<1> : tensor<4x2x1x1xi8> : tensor<4x2x1x1xi8>
  // expected-error @below {{groups must have several channels in whole 4-byte words}}
  %y = device.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, cuda.tile = #cuda.tile<16 x 32, k_bytes = 64, warps = 1 x 1 x 1, stages = 4>} : (tensor<1x4x4x4xi8>, tensor<4x2x1x1xi8>) -> tensor<1x4x4x4xi32>
  return %y : tensor<1x4x4x4xi32>
}
