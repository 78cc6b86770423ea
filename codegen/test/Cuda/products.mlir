// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --cuda-choose-tiles --cuda-pack-weights --split-input-file | FileCheck %s
// RUN: tessera-opt %s "--cuda-choose-tiles=multiprocessors=1" --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: tessera-opt %s "--cuda-choose-tiles=tf32=true" --split-input-file | FileCheck %s --check-prefix=TF32

// A matrix becomes rows of K, each padded with zeros to 16 bytes.
// CHECK-LABEL: func.func @matrix
// CHECK: %[[W:.*]] = top.constant dense<{{\[}}[1, 3, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [2, 4, 6, 0, {{.*}}]]> : tensor<2x16xi8>
// CHECK: device.matmul %arg0, %[[W]] {cuda.tile = #cuda.tile<{{.*}}>, packing = #cuda.packing<rows, shape = [3, 2]>}
func.func @matrix(%x: tensor<4x3xi8>) -> tensor<4x2xi32> {
  %w = top.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi8> : tensor<3x2xi8>
  %y = device.matmul %x, %w : (tensor<4x3xi8>, tensor<3x2xi8>) -> tensor<4x2xi32>
  return %y : tensor<4x2xi32>
}

// -----

// With a channel-blocked x, the weights of a kernel position are a run of channels, padded with zeros to 16 bytes.
// CHECK-LABEL: func.func @taps
// CHECK: %[[W:.*]] = top.constant dense<{{\[}}[1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 0, {{.*}}]]> : tensor<1x32xi8>
// CHECK: device.conv %arg0, %[[W]] {cuda.tile = {{.*}}packing = #cuda.packing<taps, shape = [1, 2, 1, 2]>
func.func @taps(%x: tensor<1x2x4x4xi8, #device.blocked<32>>) -> tensor<1x1x4x3xi32, #device.blocked<32>> {
  %w = top.constant dense<[[[[1, 2]], [[3, 4]]]]> : tensor<1x2x1x2xi8> : tensor<1x2x1x2xi8>
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xi8, #device.blocked<32>>, tensor<1x2x1x2xi8>) -> tensor<1x1x4x3xi32, #device.blocked<32>>
  return %y : tensor<1x1x4x3xi32, #device.blocked<32>>
}

// -----

// Two groups of four channels: the channels of each group per kernel position, without padding between positions.
// CHECK-LABEL: func.func @groups
// CHECK: %[[W:.*]] = top.constant dense<{{\[}}[1, 3, 5, 7, 2, 4, 6, 8, 0, {{.*}}], [9, {{.*}}]]> : tensor<2x16xi8>
// CHECK: device.conv %arg0, %[[W]] {cuda.tile = {{.*}}groups = 2 : i64, packing = #cuda.packing<taps, shape = [2, 4, 1, 2]>
func.func @groups(%x: tensor<1x8x4x4xi8, #device.blocked<32>>) -> tensor<1x2x4x3xi32, #device.blocked<32>> {
  %w = top.constant dense<[[[[1, 2]], [[3, 4]], [[5, 6]], [[7, 8]]], [[[9, 9]], [[9, 9]], [[9, 9]], [[9, 9]]]]> : tensor<2x4x1x2xi8> : tensor<2x4x1x2xi8>
  %y = device.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x8x4x4xi8, #device.blocked<32>>, tensor<2x4x1x2xi8>) -> tensor<1x2x4x3xi32, #device.blocked<32>>
  return %y : tensor<1x2x4x3xi32, #device.blocked<32>>
}

// -----

// A depthwise filter of f16: kernel positions outermost.
// CHECK-LABEL: func.func @depthwise
// CHECK: top.constant dense<{{\[}}[1.000000e+00, 3.000000e+00, 0.000000e+00, {{.*}}], [2.000000e+00, 4.000000e+00, {{.*}}]]> : tensor<2x32xf16>
// CHECK: packing = #cuda.packing<depthwise, shape = [2, 1, 1, 2]>
func.func @depthwise(%x: tensor<1x2x4x4xf16, #device.blocked<32>>) -> tensor<1x2x4x3xf32, #device.blocked<32>> {
  %w = top.constant dense<[[[[1.0, 2.0]]], [[[3.0, 4.0]]]]> : tensor<2x1x1x2xf16> : tensor<2x1x1x2xf16>
  %y = device.conv %x, %w {groups = 2 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf16, #device.blocked<32>>, tensor<2x1x1x2xf16>) -> tensor<1x2x4x3xf32, #device.blocked<32>>
  return %y : tensor<1x2x4x3xf32, #device.blocked<32>>
}

// -----

// A matmul of two activations has a tile but nothing to pack; one with a long K and few sums has warps along K.
// CHECK-LABEL: func.func @activations
// CHECK: device.matmul %arg0, %arg1 {cuda.tile = #cuda.tile<16 x 32, {{.*}} x 8, stages = {{.*}}>}
func.func @activations(%x: tensor<4x4096xbf16>, %w: tensor<4096x8xbf16>) -> tensor<4x8xf32> {
  %y = device.matmul %x, %w : (tensor<4x4096xbf16>, tensor<4096x8xbf16>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// For many sums, a small GPU gets the tile that reads its operands least often, a large one a tile that keeps it busy.
// CHECK-LABEL: func.func @large
// CHECK-NOT: <128 x 128
// ONE-LABEL: func.func @large
// ONE: cuda.tile = #cuda.tile<128 x 128
func.func @large(%x: tensor<512x512xi8>, %w: tensor<512x512xi8>) -> tensor<512x512xi32> {
  %y = device.matmul %x, %w : (tensor<512x512xi8>, tensor<512x512xi8>) -> tensor<512x512xi32>
  return %y : tensor<512x512xi32>
}

// -----

// Tiles do not support a specified order of sums (f16, f32) and groups of less than a word.
// CHECK-LABEL: func.func @others
// CHECK-NOT: cuda.tile
func.func @others(%x: tensor<4x8xf16>, %f: tensor<4x8xf32>, %i: tensor<1x4x4x4xi8>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<1x4x4x4xi32>) attributes {device.exact} {
  %w = top.constant dense<1.0> : tensor<8x4xf16> : tensor<8x4xf16>
  %v = top.constant dense<1.0> : tensor<8x4xf32> : tensor<8x4xf32>
  %u = top.constant dense<1> : tensor<4x2x1x1xi8> : tensor<4x2x1x1xi8>
  %y = device.matmul %x, %w : (tensor<4x8xf16>, tensor<8x4xf16>) -> tensor<4x4xf32>
  %z = device.matmul %f, %v : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %g = device.conv %i, %u {groups = 2 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x4x4xi8>, tensor<4x2x1x1xi8>) -> tensor<1x4x4x4xi32>
  return %y, %z, %g : tensor<4x4xf32>, tensor<4x4xf32>, tensor<1x4x4x4xi32>
}

// -----

// f32 contractions have tiles for the cores; with operands rounded to tf32, tiles for tensor cores.
// CHECK-LABEL: func.func @singles
// CHECK: cuda.tile = #cuda.tile<{{.*}}stages = {{[0-9]}}>, packing = #cuda.packing<rows, shape = [8, 16]>} : (tensor<512x8xf32>, tensor<16x8xf32>)
// TF32-LABEL: func.func @singles
// TF32: cuda.tile = #cuda.tile<{{.*}}, tf32 = true>
func.func @singles(%x: tensor<512x8xf32>) -> tensor<512x16xf32> {
  %w = top.constant dense<0.5> : tensor<8x16xf32> : tensor<8x16xf32>
  %y = device.matmul %x, %w : (tensor<512x8xf32>, tensor<8x16xf32>) -> tensor<512x16xf32>
  return %y : tensor<512x16xf32>
}

// -----

// If few blocks would sum along a long K, several share a tile, provided that it pays for the launch that clears
// counters.
// CHECK-LABEL: func.func @long
// CHECK: cuda.tile = #cuda.tile<{{.*}}, split_k = {{[0-9]+}}>
// ONE-LABEL: func.func @long
// ONE-NOT: split_k
func.func @long(%x: tensor<32x65536xf16>, %w: tensor<65536x64xf16>) -> tensor<32x64xf32> {
  %y = device.matmul %x, %w : (tensor<32x65536xf16>, tensor<65536x64xf16>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}

// -----

// A few rows of f32 by 4-bit integers: the scales follow each row of weights.
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: scales
// CHECK: device.matmul %arg0, %{{.*}} {cuda.gemv = #cuda.gemv<columns = 2, warps = 4 x 1>, packing = #cuda.packing<nibbles, shape = [256, 4], group = 32>} : (tensor<3x256xf32>, tensor<4x160xi8>) -> tensor<3x4xf32>
func.func @few_rows(%x: tensor<3x256xf32>) -> tensor<3x4xf32> {
  %w = top.constant dense<-8> : tensor<256x4xi8> : tensor<256x4xi8>
  %s = top.constant dense<0.5> : tensor<8x4xf32> : tensor<8x4xf32>
  %y = device.matmul %x, %w scales %s {weightGroup = 32 : i64} : (tensor<3x256xf32>, tensor<256x4xi8>, tensor<8x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Integers of more than 4 bits, and one scale for all of K.
// CHECK-LABEL: func.func @bytes
// CHECK: {cuda.gemv = #cuda.gemv<columns = 2, warps = 4 x 1>, {{.*}}packing = #cuda.packing<bytes, shape = [1, 512], group = 512>{{.*}}} : (tensor<1x512xf32>, tensor<1x528xi8>)
func.func @bytes(%x: tensor<1x512xf32>) -> tensor<1x1xf32> {
  %w = top.constant dense<-9> : tensor<1x512xi8> : tensor<1x512xi8>
  %s = top.constant dense<0.5> : tensor<1x1xf32> : tensor<1x1xf32>
  %y = device.matmul %x, %w scales %s {transB = true, weightGroup = 512 : i64} : (tensor<1x512xf32>, tensor<1x512xi8>, tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// -----

// More rows: weights of bytes are widened to f32 by tiles but stay packed as bytes, with rows of whole chunks of f32.
// CHECK-LABEL: func.func @widened
// CHECK: device.matmul %arg0, %{{.*}} scales %{{.*}} {cuda.tile = #cuda.tile<{{.*}}>, packing = #cuda.packing<rows, shape = [70, 4]>, weightGroup = 32 : i64} : (tensor<16x70xf32>, tensor<4x72xi8>, tensor<3x4xf32>)
// CHECK: device.matmul %arg1, %{{.*}} {cuda.tile = {{.*}} : (tensor<16x64xf32>, tensor<4x64xbf16>)
func.func @widened(%x: tensor<16x70xf32>, %z: tensor<16x64xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>) {
  %w = top.constant dense<1> : tensor<70x4xi8> : tensor<70x4xi8>
  %s = top.constant dense<0.5> : tensor<3x4xf32> : tensor<3x4xf32>
  %v = top.constant dense<0.5> : tensor<64x4xbf16> : tensor<64x4xbf16>
  %y = device.matmul %x, %w scales %s {weightGroup = 32 : i64} : (tensor<16x70xf32>, tensor<70x4xi8>, tensor<3x4xf32>) -> tensor<16x4xf32>
  %u = device.matmul %z, %v : (tensor<16x64xf32>, tensor<64x4xbf16>) -> tensor<16x4xf32>
  return %y, %u : tensor<16x4xf32>, tensor<16x4xf32>
}

// -----

// Groups for which no thread's chunk consists of whole runs.
// CHECK-LABEL: func.func @odd_groups
// CHECK-NOT: cuda.gemv
func.func @odd_groups(%x: tensor<1x288xf32>) -> tensor<1x2xf32> {
  %w = top.constant dense<1> : tensor<288x2xi8> : tensor<288x2xi8>
  %s = top.constant dense<0.5> : tensor<29x2xf32> : tensor<29x2xf32>
  %y = device.matmul %x, %w scales %s {weightGroup = 10 : i64} : (tensor<1x288xf32>, tensor<288x2xi8>, tensor<29x2xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}
