// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --cuda-fuse-attention --split-input-file | FileCheck %s
// RUN: tessera-opt %s --cuda-fuse-attention --cuda-choose-tiles --split-input-file | FileCheck %s --check-prefix=TILE

// Attention reads heads in the projection's layout and writes the layout that the next op needs. The rounding of the
// result makes q, k and v narrow as well: the ops that compute them round them.
// CHECK-LABEL: func.func @heads
// CHECK: %[[P:.*]] = device.matmul %arg0, %arg1 epilogue {
// CHECK: arith.truncf
// CHECK: -> tensor<1x32x48xf16>
// CHECK: %[[Q:.*]] = device.reshape %[[P]] : (tensor<1x32x48xf16>) -> tensor<1x32x3x2x8xf16>
// CHECK: %[[Y:.*]] = device.attention %[[Q]], %[[Q]], %[[Q]]
// CHECK-SAME: src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 0, 0, 0]
// CHECK-SAME: src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 1, 0, 0]
// CHECK-SAME: src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 2, 0, 0]
// CHECK-SAME: sizes = [1, 32, 2, 8], {{.*}} src_dims = [0, 2, 1, 3]
// CHECK-SAME: -> tensor<1x32x2x8xf16>
// CHECK-NEXT: return %[[Y]]
// TILE-LABEL: func.func @heads
// TILE: device.attention {{.*}}cuda.attention = #cuda.attention<warps = 1, keys = 64>
func.func @heads(%x: tensor<1x32x16xf16>, %w: tensor<16x48xf16>) -> tensor<1x32x2x8xf16> {
  %p = device.matmul %x, %w : (tensor<1x32x16xf16>, tensor<16x48xf16>) -> tensor<1x32x48xf32>
  %h = device.reshape %p : (tensor<1x32x48xf32>) -> tensor<1x32x3x2x8xf32>
  %q = device.copy %h {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x3x2x8xf32>) -> tensor<1x2x32x8xf32>
  %k = device.copy %h {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 1, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x3x2x8xf32>) -> tensor<1x2x32x8xf32>
  %v = device.copy %h {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 2, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x3x2x8xf32>) -> tensor<1x2x32x8xf32>
  %a = device.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>, tensor<1x2x32x8xf32>) -> tensor<1x2x32x8xf32>
  %n = device.map(%a) {
  ^bb0(%e: f32):
    %t = arith.truncf %e : f32 to f16
    device.yield %t : f16
  } : (tensor<1x2x32x8xf32>) -> tensor<1x2x32x8xf16>
  %y = device.copy %n {pieces = [#device.piece<source = 0, sizes = [1, 32, 2, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 1, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x2x32x8xf16>) -> tensor<1x32x2x8xf16>
  return %y : tensor<1x32x2x8xf16>
}

// -----

// Groups of queries become separate dims; a map of the result runs after the move; f32 stays f32.
// CHECK-LABEL: func.func @groups
// CHECK: %[[Y:.*]] = device.attention %arg0, %arg1, %arg1
// CHECK-SAME: sizes = [1, 2, 2, 32, 8], {{.*}} src_dims = [0, 2, 2, 1, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 2, 1, 1, 1]
// CHECK-SAME: sizes = [1, 32, 2, 2, 8], {{.*}} src_dims = [0, 3, 1, 2, 4]
// CHECK-SAME: -> tensor<1x32x2x2x8xf32>
// CHECK: %[[M:.*]] = device.map(%[[Y]])
// CHECK: -> tensor<1x32x2x2x8xi8>
// CHECK: device.reshape %[[M]] : (tensor<1x32x2x2x8xi8>) -> tensor<1x32x4x8xi8>
// TILE-LABEL: func.func @groups
// TILE-NOT: cuda.attention
func.func @groups(%x: tensor<1x32x4x8xf32>, %k: tensor<1x2x1x40x8xf32>) -> tensor<1x32x4x8xi8> {
  %q = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 4, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 1, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x4x8xf32>) -> tensor<1x4x32x8xf32>
  %g = device.reshape %q : (tensor<1x4x32x8xf32>) -> tensor<1x2x2x32x8xf32>
  %a = device.attention %g, %k, %k {scale = 0.5 : f64} : (tensor<1x2x2x32x8xf32>, tensor<1x2x1x40x8xf32>, tensor<1x2x1x40x8xf32>) -> tensor<1x2x2x32x8xf32>
  %m = device.map(%a) {
  ^bb0(%e: f32):
    %t = arith.fptosi %e : f32 to i8
    device.yield %t : i8
  } : (tensor<1x2x2x32x8xf32>) -> tensor<1x2x2x32x8xi8>
  %h = device.reshape %m : (tensor<1x2x2x32x8xi8>) -> tensor<1x4x32x8xi8>
  %y = device.copy %h {pieces = [#device.piece<source = 0, sizes = [1, 32, 4, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 1, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x4x32x8xi8>) -> tensor<1x32x4x8xi8>
  return %y : tensor<1x32x4x8xi8>
}

// -----

// Columns that are not contiguous stay a copy. Rows of 12 elements are not whole runs of 16 bytes, so tensor cores do
// not support them, and nothing is rounded.
// CHECK-LABEL: func.func @columns
// CHECK: %[[K:.*]] = device.copy
// CHECK: device.attention %arg0, %[[K]], %[[K]]
// CHECK-SAME: -> tensor<2x16x12xbf16>
// TILE-LABEL: func.func @columns
// TILE-NOT: cuda.attention
func.func @columns(%q: tensor<2x16x12xf32>, %x: tensor<2x12x20xf32>) -> tensor<2x16x12xbf16> {
  %k = device.copy %x {pieces = [#device.piece<source = 0, sizes = [2, 20, 12], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<2x12x20xf32>) -> tensor<2x20x12xf32>
  %a = device.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<2x16x12xf32>, tensor<2x20x12xf32>, tensor<2x20x12xf32>) -> tensor<2x16x12xf32>
  %n = device.map(%a) {
  ^bb0(%e: f32):
    %t = arith.truncf %e : f32 to bf16
    device.yield %t : bf16
  } : (tensor<2x16x12xf32>) -> tensor<2x16x12xbf16>
  return %n : tensor<2x16x12xbf16>
}

// -----

// Integer attention also reads and writes heads in the projections' layout.
// CHECK-LABEL: func.func @integers
// CHECK-NOT: device.copy
// CHECK: device.attention %{{.*}}, %{{.*}}, %{{.*}} {levels = 255 : i64, {{.*}}views = [
// CHECK-SAME: src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 2, 0, 0]
func.func @integers(%x: tensor<1x32x48xi8>) -> tensor<1x32x2x8xf32> attributes {device.exact} {
  %h = device.reshape %x : (tensor<1x32x48xi8>) -> tensor<1x32x3x2x8xi8>
  %q = device.copy %h {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x3x2x8xi8>) -> tensor<1x2x32x8xi8>
  %k = device.copy %h {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 1, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x3x2x8xi8>) -> tensor<1x2x32x8xi8>
  %v = device.copy %h {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 3, 1, 4], src_offsets = [0, 0, 2, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x3x2x8xi8>) -> tensor<1x2x32x8xi8>
  %a = device.attention %q, %k, %v {levels = 255 : i64, scale = 0.001 : f64, valueScale = 0.015 : f64} : (tensor<1x2x32x8xi8>, tensor<1x2x32x8xi8>, tensor<1x2x32x8xi8>) -> tensor<1x2x32x8xf32>
  %y = device.copy %a {pieces = [#device.piece<source = 0, sizes = [1, 32, 2, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 1, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x2x32x8xf32>) -> tensor<1x32x2x8xf32>
  return %y : tensor<1x32x2x8xf32>
}

// -----

// Keys that are also the values, and the same copy as the queries: the copy is erased once.
// CHECK-LABEL: func.func @one_value
// CHECK-NOT: device.copy
// CHECK: device.attention
// TILE-LABEL: func.func @one_value
func.func @one_value(%x: tensor<1x32x2x8xf16>) -> tensor<1x2x32x8xf16> {
  %r = device.reshape %x : (tensor<1x32x2x8xf16>) -> tensor<1x32x1x2x8xf16>
  %s = device.reshape %r : (tensor<1x32x1x2x8xf16>) -> tensor<1x32x2x8xf16>
  %q = device.copy %s {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 1, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x32x2x8xf16>) -> tensor<1x2x32x8xf16>
  %a = device.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<1x2x32x8xf16>, tensor<1x2x32x8xf16>, tensor<1x2x32x8xf16>) -> tensor<1x2x32x8xf16>
  return %a : tensor<1x2x32x8xf16>
}
