// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-assign-layouts --x86-pack-weights --split-input-file | FileCheck %s
// RUN: tessera-opt %s --x86-assign-layouts "--x86-pack-weights=byte-dots=true" --split-input-file | FileCheck %s --check-prefix=DOTS
// RUN: tessera-opt %s --x86-assign-layouts=bf16-dots=true --x86-pack-weights=bf16-dots=true --split-input-file | FileCheck %s --check-prefix=PAIRS
// RUN: tessera-opt %s --x86-assign-layouts --x86-pack-weights --split-input-file | tessera-opt --split-input-file --x86-verify-packing | FileCheck %s

// A matrix becomes one panel [K][16] with zeros beyond its columns.
// CHECK-LABEL: func.func @matrix
// CHECK: %[[W:.*]] = top.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 0.000000e+00,{{.*}} 4.000000e+00, 5.000000e+00, 6.000000e+00, 0.000000e+00, {{.*}}> : tensor<32xf32>
// CHECK: device.matmul %arg0, %[[W]] {
// CHECK-SAME: packing = #x86.packing<matrix, f32, shape = [2, 3], tile = 28 x 16>
func.func @matrix(%x: tensor<4x2xf32>) -> tensor<4x3xf32> {
  %w = top.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = device.matmul %x, %w : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// Subnormal weights and biases become zero; the smallest normal number stays.
// CHECK-LABEL: func.func @subnormal
// CHECK-DAG: %[[W:.*]] = top.constant dense<[1.17549435E-38, 0.000000e+00, 2.000000e+00, 0.000000e+00,
// CHECK-DAG: %[[B:.*]] = top.constant dense<[0.000000e+00, 1.000000e+00, 0.000000e+00]>
// CHECK: device.matmul %arg0, %[[W]] bias %[[B]]
func.func @subnormal(%x: tensor<4x1xf32>) -> tensor<4x3xf32> {
  %w = top.constant dense<[[0x00800000, 0x00000001, 2.0]]> : tensor<1x3xf32> : tensor<1x3xf32>
  %b = top.constant dense<[0x807fffff, 1.0, 0x00000100]> : tensor<3xf32> : tensor<3xf32>
  %y = device.matmul %x, %w bias %b : (tensor<4x1xf32>, tensor<1x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// A depthwise filter becomes [C / 16][taps][16].
// CHECK-LABEL: func.func @depthwise
// CHECK: %[[W:.*]] = top.constant dense<[1.000000e+00, 3.000000e+00, 0.000000e+00,{{.*}} 2.000000e+00, 4.000000e+00, 0.000000e+00, {{.*}}> : tensor<32xf32>
// CHECK: device.conv %{{.*}}, %[[W]] {
// CHECK-SAME: packing = #x86.packing<depthwise, f32, shape = [2, 1, 1, 2], tile = 14 x 16>
// CHECK-NOT: x86.algorithm
func.func @depthwise(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x3xf32> {
  %w = top.constant dense<[[[[1.0, 2.0]]], [[[3.0, 4.0]]]]> : tensor<2x1x1x2xf32> : tensor<2x1x1x2xf32>
  %y = device.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>, tensor<2x1x1x2xf32>) -> tensor<1x2x4x3xf32>
  return %y : tensor<1x2x4x3xf32>
}

// -----

// A matrix that is not constant is packed by the kernel at run time.
// CHECK-LABEL: func.func @open
// CHECK: device.matmul %arg0, %arg1
// CHECK-NOT: packing
// CHECK: return
func.func @open(%x: tensor<4x2xf32>, %w: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %y = device.matmul %x, %w : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// Two K steps of integers from -8 to 7 share a byte: 1 and -1 are 0xf1, 2 and 7 are 0x72. One scale per column and the
// bias go into the epilogue.
// CHECK-LABEL: func.func @nibbles
// CHECK: %[[W:.*]] = top.constant dense<[-15, 114, 0, {{.*}}]> : tensor<16xi8>
// CHECK: device.matmul %arg0, %[[W]] extras(%{{.*}}, %{{.*}}) epilogue
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[F:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[F]] : f32
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[P]], %[[B]] : f32
// CHECK-NEXT: device.yield %[[S]] : f32
// CHECK: packing = #x86.packing<matrix, i4, shape = [2, 2], tile = 28 x 16>
func.func @nibbles(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = top.constant dense<[[1, 2], [-1, 7]]> : tensor<2x2xi8> : tensor<2x2xi8>
  %s = top.constant dense<[[0.5, 0.25]]> : tensor<1x2xf32> : tensor<1x2xf32>
  %b = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %y = device.matmul %x, %w scales %s bias %b {weightGroup = 2 : i64} : (tensor<3x2xf32>, tensor<2x2xi8>, tensor<2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// There is no kernel for groups that are not whole blocks of 16 steps: the weights become f32 again.
// CHECK-LABEL: func.func @odd_groups
// CHECK: top.constant dense<[5.000000e-01, {{.*}}1.000000e+00, {{.*}}> : tensor<48xf32>
// CHECK: device.matmul
// CHECK-NOT: scales
func.func @odd_groups(%x: tensor<3x3xf32>) -> tensor<3x1xf32> {
  %w = top.constant dense<[[1], [1], [1]]> : tensor<3x1xi8> : tensor<3x1xi8>
  %s = top.constant dense<[[0.5], [1.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %y = device.matmul %x, %w scales %s {weightGroup = 2 : i64} : (tensor<3x3xf32>, tensor<3x1xi8>, tensor<2x1xf32>) -> tensor<3x1xf32>
  return %y : tensor<3x1xf32>
}

// -----

// Scales of several groups follow the integers of their panel.
// CHECK-LABEL: func.func @scale_rows
// CHECK: device.matmul
// CHECK-SAME: packing = #x86.packing<matrix, i8, shape = [32, 1], tile = 28 x 16, scale_group = 16>
func.func @scale_rows(%x: tensor<3x32xf32>) -> tensor<3x1xf32> {
  %w = top.constant dense<100> : tensor<32x1xi8> : tensor<32x1xi8>
  %s = top.constant dense<[[0.5], [1.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %y = device.matmul %x, %w scales %s {weightGroup = 16 : i64} : (tensor<3x32xf32>, tensor<32x1xi8>, tensor<2x1xf32>) -> tensor<3x1xf32>
  return %y : tensor<3x1xf32>
}

// -----

// Bytes use dot products of four if the chip has them, else pairs of words; the order of K follows the input.
// CHECK-LABEL: func.func @bytes
// CHECK: packing = #x86.packing<taps, i16x4, shape = [16, 3, 3, 3], tile = {{[0-9]+}} x 16>
// DOTS-LABEL: func.func @bytes
// DOTS: packing = #x86.packing<taps, i8x4, shape = [16, 3, 3, 3], tile = {{[0-9]+}} x 16>
func.func @bytes(%x: tensor<1x3x8x8xi8>) -> tensor<1x16x6x6xi32> {
  %w = top.constant dense<1> : tensor<16x3x3x3xi8> : tensor<16x3x3x3xi8>
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xi8>, tensor<16x3x3x3xi8>) -> tensor<1x16x6x6xi32>
  return %y : tensor<1x16x6x6xi32>
}

// -----

// Dilated columns of an image are separate K steps; depthwise bytes use windows if the chip has dot products.
// CHECK-LABEL: func.func @apart
// CHECK: packing = #x86.packing<apart, f32, shape = [16, 1, 3, 3]
// CHECK: packing = #x86.packing<depthwise, f32, shape = [16, 1, 3, 3], tile = 16 x 16>
// DOTS-LABEL: func.func @apart
// DOTS: packing = #x86.packing<windows, i8x4, shape = [16, 1, 3, 3], tile = 16 x 16>
func.func @apart(%x: tensor<1x1x9x9xf32>, %b: tensor<1x16x8x8xi8>) -> (tensor<1x16x5x5xf32>, tensor<1x16x6x6xi32>) {
  %w = top.constant dense<1.0> : tensor<16x1x3x3xf32> : tensor<16x1x3x3xf32>
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 2>} : (tensor<1x1x9x9xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x5x5xf32>
  %v = top.constant dense<1> : tensor<16x1x3x3xi8> : tensor<16x1x3x3xi8>
  %z = device.conv %b, %v {groups = 16 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xi8>, tensor<16x1x3x3xi8>) -> tensor<1x16x6x6xi32>
  return %y, %z : tensor<1x16x5x5xf32>, tensor<1x16x6x6xi32>
}

// -----

// bf16 times bf16 packs pairs of K, an odd last one with zero; f32 and widened operands pack single elements.
// PAIRS-LABEL: func.func @bf16_pairs
// PAIRS: top.constant dense<[1.000000e+00, 4.000000e+00, 2.000000e+00, 5.000000e+00, 3.000000e+00, 6.000000e+00, 0.000000e+00, {{.*}} 7.000000e+00, 0.000000e+00, 8.000000e+00, 0.000000e+00, 9.000000e+00, 0.000000e+00,{{.*}}> : tensor<64xbf16>
// PAIRS: packing = #x86.packing<matrix, bf16x2, shape = [3, 3], tile = 28 x 16>
// PAIRS: packing = #x86.packing<matrix, bf16, shape = [3, 3], tile = 28 x 16>
// CHECK-LABEL: func.func @bf16_pairs
// CHECK-COUNT-2: packing = #x86.packing<matrix, bf16, shape = [3, 3], tile = 28 x 16>
func.func @bf16_pairs(%x: tensor<4x3xbf16>, %f: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]> : tensor<3x3xbf16> : tensor<3x3xbf16>
  %y = device.matmul %x, %w : (tensor<4x3xbf16>, tensor<3x3xbf16>) -> tensor<4x3xf32>
  %z = device.matmul %f, %w : (tensor<4x3xf32>, tensor<3x3xbf16>) -> tensor<4x3xf32>
  return %y, %z : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// Rows of an image are read in pairs of columns; the last of an odd number of columns is single.
// PAIRS-LABEL: func.func @bf16_rows
// PAIRS: packing = #x86.packing<taps, bf16x2, shape = [16, 3, 2, 2]
// PAIRS: packing = #x86.packing<taps, bf16x2, shape = [16, 3, 3, 3]
// PAIRS: packing = #x86.packing<blocks, bf16x2, shape = [16, 16, 1, 2]
func.func @bf16_rows(%x: tensor<1x3x8x8xbf16>, %d: tensor<1x16x6x6xbf16>) -> (tensor<1x16x7x7xf32>, tensor<1x16x6x6xf32>, tensor<1x16x6x5xf32>) {
  %w2 = top.constant dense<1.0> : tensor<16x3x2x2xbf16> : tensor<16x3x2x2xbf16>
  %w3 = top.constant dense<1.0> : tensor<16x3x3x3xbf16> : tensor<16x3x3x3xbf16>
  %w = top.constant dense<1.0> : tensor<16x16x1x2xbf16> : tensor<16x16x1x2xbf16>
  %a = device.conv %x, %w2 {groups = 1 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xbf16>, tensor<16x3x2x2xbf16>) -> tensor<1x16x7x7xf32>
  %b = device.conv %x, %w3 {groups = 1 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xbf16>, tensor<16x3x3x3xbf16>) -> tensor<1x16x6x6xf32>
  %c = device.conv %d, %w {groups = 1 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x6x6xbf16>, tensor<16x16x1x2xbf16>) -> tensor<1x16x6x5xf32>
  return %a, %b, %c : tensor<1x16x7x7xf32>, tensor<1x16x6x6xf32>, tensor<1x16x6x5xf32>
}
