// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-assign-layouts="bf16-dots=true amx=true" --x86-pack-weights="byte-dots=true bf16-dots=true amx=true" --split-input-file | FileCheck %s

// Chunks divide K if possible; signed bytes keep their bias.
// CHECK-LABEL: func.func @products
// CHECK-NOT: dense<-
// CHECK: packing = #x86.packing<matrix, i8x4, shape = [80, 12], tile = 32 x 16, chunk = 40>
// CHECK-SAME: tensor<1280xi8>
// CHECK: packing = #x86.packing<matrix, bf16x2, shape = [96, 5], tile = 32 x 16, chunk = 64>
func.func @products(%x: tensor<64x80xi8>, %f: tensor<64x96xbf16>) -> (tensor<64x12xi32>, tensor<64x5xf32>) {
  %w = top.constant dense<1> : tensor<80x12xi8> : tensor<80x12xi8>
  %v = top.constant dense<1.0> : tensor<96x5xbf16> : tensor<96x5xbf16>
  %y = device.matmul %x, %w : (tensor<64x80xi8>, tensor<80x12xi8>) -> tensor<64x12xi32>
  %z = device.matmul %f, %v : (tensor<64x96xbf16>, tensor<96x5xbf16>) -> tensor<64x5xf32>
  return %y, %z : tensor<64x12xi32>, tensor<64x5xf32>
}

// -----

// K of 68 bytes is padded to two chunks of 36; a single row uses vectors, which multiply signed bytes as x + 128.
// CHECK-LABEL: func.func @padded
// CHECK: packing = #x86.packing<matrix, i8x4, shape = [68, 15], tile = 32 x 16, chunk = 36>
// CHECK-SAME: tensor<1152xi8>
// CHECK: packing = #x86.packing<matrix, i8x4, shape = [68, 15], tile = {{[0-9]+}} x 16>
func.func @padded(%x: tensor<64x68xi8>, %one: tensor<1x68xi8>) -> (tensor<64x15xi32>, tensor<1x15xi32>) {
  %w = top.constant dense<1> : tensor<68x15xi8> : tensor<68x15xi8>
  %y = device.matmul %x, %w : (tensor<64x68xi8>, tensor<68x15xi8>) -> tensor<64x15xi32>
  %z = device.matmul %one, %w : (tensor<1x68xi8>, tensor<68x15xi8>) -> tensor<1x15xi32>
  return %y, %z : tensor<64x15xi32>, tensor<1x15xi32>
}

// -----

// Three channels of a row-major image are padded to pixels of four.
// CHECK-LABEL: func.func @image
// CHECK: packing = #x86.packing<pixels, i8x4, shape = [6, 3, 7, 7], tile = 32 x 16, chunk = 28>
// CHECK-SAME: tensor<3136xi8>
func.func @image(%x: tensor<1x3x64x64xui8>) -> tensor<1x6x32x32xi32> {
  %w = top.constant dense<1> : tensor<6x3x7x7xi8> : tensor<6x3x7x7xi8>
  %y = device.conv %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 3, 3, 3, 3>, dilations = array<i64: 1, 1>} : (tensor<1x3x64x64xui8>, tensor<6x3x7x7xi8>) -> tensor<1x6x32x32xi32>
  return %y : tensor<1x6x32x32xi32>
}

// -----

// The taps of a kernel row are contiguous: three times 16 channels are one chunk. With dilation 2, each column is a
// chunk.
// CHECK-LABEL: func.func @taps
// CHECK: packing = #x86.packing<channels_last, i8x4, shape = [7, 16, 3, 3], tile = 32 x 16, chunk = 48>
// CHECK: packing = #x86.packing<channels_last, i8x4, shape = [1, 64, 3, 3], tile = 32 x 16, chunk = 64>
func.func @taps(%x: tensor<1x16x16x16xi8>, %far: tensor<1x64x16x16xi8>) -> (tensor<1x7x16x16xi32>, tensor<1x1x12x12xi32>) {
  %w = top.constant dense<1> : tensor<7x16x3x3xi8> : tensor<7x16x3x3xi8>
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x16x16x16xi8>, tensor<7x16x3x3xi8>) -> tensor<1x7x16x16xi32>
  %v = top.constant dense<1> : tensor<1x64x3x3xi8> : tensor<1x64x3x3xi8>
  %z = device.conv %far, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 2>} : (tensor<1x64x16x16xi8>, tensor<1x64x3x3xi8>) -> tensor<1x1x12x12xi32>
  return %y, %z : tensor<1x7x16x16xi32>, tensor<1x1x12x12xi32>
}

// -----

// The low and high bytes of i16 are separate rows, so a tile has 16 rows. An image uses vectors, and so does a matmul
// with so few columns that splitting the bytes does not pay.
// CHECK-LABEL: func.func @words
// CHECK: packing = #x86.packing<matrix, i16x2, shape = [80, 12], tile = 28 x 16>
// CHECK: packing = #x86.packing<channels_last, i8x4, shape = [7, 16, 3, 3], tile = 16 x 16, chunk = 48>
// CHECK: packing = #x86.packing<taps, i16x2
func.func @words(%x: tensor<64x80xi16>, %c: tensor<1x16x16x16xi16>, %i: tensor<1x3x64x64xi16>)
    -> (tensor<64x12xi32>, tensor<1x7x16x16xi32>, tensor<1x6x32x32xi32>) {
  %w = top.constant dense<1> : tensor<80x12xi8> : tensor<80x12xi8>
  %y = device.matmul %x, %w {sumBound = 1 : i64} : (tensor<64x80xi16>, tensor<80x12xi8>) -> tensor<64x12xi32>
  %v = top.constant dense<1> : tensor<7x16x3x3xi8> : tensor<7x16x3x3xi8>
  %z = device.conv %c, %v {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, sumBound = 1 : i64} : (tensor<1x16x16x16xi16>, tensor<7x16x3x3xi8>) -> tensor<1x7x16x16xi32>
  %u = top.constant dense<1> : tensor<6x3x7x7xi8> : tensor<6x3x7x7xi8>
  %r = device.conv %i, %u {strides = array<i64: 2, 2>, pads = array<i64: 3, 3, 3, 3>, dilations = array<i64: 1, 1>, sumBound = 1 : i64} : (tensor<1x3x64x64xi16>, tensor<6x3x7x7xi8>) -> tensor<1x6x32x32xi32>
  return %y, %z, %r : tensor<64x12xi32>, tensor<1x7x16x16xi32>, tensor<1x6x32x32xi32>
}
