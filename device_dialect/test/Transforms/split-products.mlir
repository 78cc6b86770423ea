// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-split-products --device-simplify-copies --canonicalize --split-input-file | FileCheck %s

// Two column ranges of 4 rows, read through a view: each gets its weights and biases, and one copy disappears.
// CHECK-LABEL: func.func @pair
// CHECK-DAG: top.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00], [5.000000e+00, 6.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: top.constant dense<{{\[\[}}3.000000e+00, 4.000000e+00], [7.000000e+00, 8.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: top.constant dense<[9.000000e+00, 1.000000e+01]> : tensor<2xf32>
// CHECK-DAG: top.constant dense<[1.100000e+01, 1.200000e+01]> : tensor<2xf32>
// CHECK-COUNT-2: device.matmul %arg0, %{{.*}} : (tensor<4x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
// CHECK-NOT: device.matmul
// CHECK-COUNT-1: device.copy
// CHECK-NOT: device.copy
// CHECK: return
func.func @pair(%x: tensor<4x2xf32>) -> (tensor<4x1x2xf32>, tensor<2x4xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %b = top.constant dense<[9.0, 10.0, 11.0, 12.0]> : tensor<4xf32> : tensor<4xf32>
  %y = device.matmul %x, %w bias %b : (tensor<4x2xf32>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %v = device.reshape %y : (tensor<4x4xf32>) -> tensor<4x2x2xf32>
  %p = device.copy %v {pieces = [#device.piece<source = 0, sizes = [4, 1, 2], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<4x2x2xf32>) -> tensor<4x1x2xf32>
  %q = device.copy %v {pieces = [#device.piece<source = 0, sizes = [2, 4], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [2, 0], src_offsets = [0, 1, 0], src_steps = [1, 1]>]} : (tensor<4x2x2xf32>) -> tensor<2x4xf32>
  return %p, %q : tensor<4x1x2xf32>, tensor<2x4xf32>
}

// -----

// Overlapping ranges are not split.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-1: device.matmul
// CHECK-NOT: device.matmul
// CHECK: return
func.func @stay(%x: tensor<4x2xf32>) -> (tensor<4x3xf32>, tensor<4x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y = device.matmul %x, %w : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %p = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 3], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x3xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 2], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  return %p, %q : tensor<4x3xf32>, tensor<4x2xf32>
}

// -----

// Weights with columns as rows; epilogue operands per column are sliced, those per row are not.
// CHECK-LABEL: func.func @turned
// CHECK-DAG: top.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00]]> : tensor<1x2xf32>
// CHECK-DAG: top.constant dense<{{\[\[}}3.000000e+00, 4.000000e+00], [5.000000e+00, 6.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: %[[F:.*]] = top.constant dense<7.000000e+00> : tensor<1xf32>
// CHECK-DAG: %[[G:.*]] = top.constant dense<[8.000000e+00, 9.000000e+00]> : tensor<2xf32>
// CHECK-DAG: device.matmul %arg0, %{{.*}} extras(%[[F]], %arg1)
// CHECK-DAG: device.matmul %arg0, %{{.*}} extras(%[[G]], %arg1)
// CHECK: return
func.func @turned(%x: tensor<4x2xf32>, %r: tensor<4x1xf32>) -> (tensor<4x1xf32>, tensor<4x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %f = top.constant dense<[7.0, 8.0, 9.0]> : tensor<3xf32> : tensor<3xf32>
  %y = device.matmul %x, %w extras(%f, %r) epilogue {
  ^bb0(%a: f32, %s: f32, %t: f32):
    %0 = arith.mulf %a, %s : f32
    %1 = arith.addf %0, %t : f32
    device.yield %1 : f32
  } {transB = true} : (tensor<4x2xf32>, tensor<3x2xf32>, tensor<3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  %p = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 1], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x3xf32>) -> tensor<4x1xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 1], src_steps = [1, 1]>]} : (tensor<4x3xf32>) -> tensor<4x2xf32>
  return %p, %q : tensor<4x1xf32>, tensor<4x2xf32>
}

// -----

// A bias or a factor that is not constant cannot be sliced.
// CHECK-LABEL: func.func @given
// CHECK: device.matmul %arg0, %{{.*}} bias %arg1
// CHECK: device.matmul %arg0, %{{.*}} extras(%arg1)
// CHECK-NOT: device.matmul
// CHECK: return
func.func @given(%x: tensor<4x2xf32>, %b: tensor<4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y = device.matmul %x, %w bias %b : (tensor<4x2xf32>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %z = device.matmul %x, %w extras(%b) epilogue {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.mulf %a, %s : f32
    device.yield %0 : f32
  } : (tensor<4x2xf32>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %p = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 2], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %s = device.copy %z {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %t = device.copy %z {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 2], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  return %p, %q, %s, %t : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// A part of two dims whose last dim is not whole is not a range.
// CHECK-LABEL: func.func @scattered
// CHECK-COUNT-1: device.matmul
// CHECK-NOT: device.matmul
// CHECK: return
func.func @scattered(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y = device.matmul %x, %w : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %v = device.reshape %y : (tensor<4x4xf32>) -> tensor<4x2x2xf32>
  %p = device.copy %v {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0, 0], src_steps = [1, 1]>]} : (tensor<4x2x2xf32>) -> tensor<4x2xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 2], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  return %p, %q : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// The ranges have as many columns as the matmul, but one column appears twice.
// CHECK-LABEL: func.func @shifted
// CHECK-COUNT-1: device.matmul
// CHECK-NOT: device.matmul
// CHECK: return
func.func @shifted(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y = device.matmul %x, %w : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %p = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 1], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  return %p, %q : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// One column has no reader.
// CHECK-LABEL: func.func @left
// CHECK-COUNT-1: device.matmul
// CHECK-NOT: device.matmul
// CHECK: return
func.func @left(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x1xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y = device.matmul %x, %w : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %p = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 1], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 2], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  return %p, %q : tensor<4x2xf32>, tensor<4x1xf32>
}

// -----

// Every other column.
// CHECK-LABEL: func.func @stepped
// CHECK-COUNT-1: device.matmul
// CHECK-NOT: device.matmul
// CHECK: return
func.func @stepped(%x: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y = device.matmul %x, %w : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %p = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 2]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [4, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 2], src_steps = [1, 1]>]} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  return %p, %q : tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// With a single row, the ranges are already contiguous.
// CHECK-LABEL: func.func @single
// CHECK-COUNT-1: device.matmul
// CHECK-NOT: device.matmul
// CHECK: return
func.func @single(%x: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %w = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y = device.matmul %x, %w : (tensor<1x2xf32>, tensor<2x4xf32>) -> tensor<1x4xf32>
  %p = device.copy %y {pieces = [#device.piece<source = 0, sizes = [1, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<1x4xf32>) -> tensor<1x2xf32>
  %q = device.copy %y {pieces = [#device.piece<source = 0, sizes = [1, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [0, 2], src_steps = [1, 1]>]} : (tensor<1x4xf32>) -> tensor<1x2xf32>
  return %p, %q : tensor<1x2xf32>, tensor<1x2xf32>
}
