// RUN: tessera-opt %s --top-recover-attention --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// q is scaled, and a transpose feeds the keys into the matmul (ViT).
// CHECK-LABEL: @scaled_query
// CHECK-NEXT: %[[Y:.*]] = top.attention %arg0, %arg1, %arg2 {scale = 5.000000e-01 : f64, top.outputs = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @scaled_query(%q: tensor<1x2x5x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x3xf32>) -> tensor<1x2x5x3xf32> {
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %qs = top.mul %q, %s : (tensor<1x2x5x4xf32>, tensor<f32>) -> tensor<1x2x5x4xf32>
  %kt = top.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x6x4xf32>) -> tensor<1x2x4x6xf32>
  %p = top.matmul %qs, %kt : (tensor<1x2x5x4xf32>, tensor<1x2x4x6xf32>) -> tensor<1x2x5x6xf32>
  %m = top.softmax %p {axis = 3} : (tensor<1x2x5x6xf32>) -> tensor<1x2x5x6xf32>
  %y = top.matmul %m, %v {top.outputs = ["y"]} : (tensor<1x2x5x6xf32>, tensor<1x2x6x3xf32>) -> tensor<1x2x5x3xf32>
  return %y : tensor<1x2x5x3xf32>
}

// -----

// The mask is added after the scale (a division); the matmul also reads the keys through a transpose.
// CHECK-LABEL: @masked
// CHECK-NEXT: %[[K:.*]] = top.transpose %arg1 {perm = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: top.attention %arg0, %[[K]], %arg2, %arg3 {scale = 2.500000e-01 : f64}
// CHECK-NEXT: return
func.func @masked(%q: tensor<1x2x5x4xf32>, %k: tensor<1x6x2x4xf32>, %v: tensor<1x2x6x3xf32>, %mask: tensor<5x6xf32>) -> tensor<1x2x5x3xf32> {
  %s = top.constant dense<4.0> : tensor<f32> : tensor<f32>
  %kt = top.transpose %k {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x6x2x4xf32>) -> tensor<1x2x4x6xf32>
  %p = top.matmul %q, %kt : (tensor<1x2x5x4xf32>, tensor<1x2x4x6xf32>) -> tensor<1x2x5x6xf32>
  %d = top.div %p, %s : (tensor<1x2x5x6xf32>, tensor<f32>) -> tensor<1x2x5x6xf32>
  %a = top.add %mask, %d : (tensor<5x6xf32>, tensor<1x2x5x6xf32>) -> tensor<1x2x5x6xf32>
  %m = top.softmax %a {axis = 3} : (tensor<1x2x5x6xf32>) -> tensor<1x2x5x6xf32>
  %y = top.matmul %m, %v : (tensor<1x2x5x6xf32>, tensor<1x2x6x3xf32>) -> tensor<1x2x5x3xf32>
  return %y : tensor<1x2x5x3xf32>
}

// -----

// Grouped queries: keys and values repeat each head twice, so 4 query heads become 2 x 2.
// CHECK-LABEL: @grouped
// CHECK-DAG: %[[K:.*]] = top.reshape %arg1 {shape = array<i64: 1, 2, 1, 6, 4>}
// CHECK-DAG: %[[V:.*]] = top.reshape %arg2 {shape = array<i64: 1, 2, 1, 6, 3>}
// CHECK-DAG: %[[M:.*]] = top.reshape %arg3 {shape = array<i64: 1, 1, 1, 5, 6>}
// CHECK-DAG: %[[Q:.*]] = top.reshape %arg0 {shape = array<i64: 1, 2, 2, 5, 4>}
// CHECK: %[[A:.*]] = top.attention %[[Q]], %[[K]], %[[V]], %[[M]] {scale = 1.000000e+00 : f64}
// CHECK-SAME: -> tensor<1x2x2x5x3xf32>
// CHECK-NEXT: top.reshape %[[A]] {shape = array<i64: 1, 4, 5, 3>}
// CHECK-NOT: top.expand
func.func @grouped(%q: tensor<1x4x5x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x3xf32>, %mask: tensor<1x1x5x6xf32>) -> tensor<1x4x5x3xf32> {
  %k1 = top.reshape %k {shape = array<i64: 1, 2, 1, 6, 4>} : (tensor<1x2x6x4xf32>) -> tensor<1x2x1x6x4xf32>
  %k2 = top.expand %k1 {shape = array<i64: 1, 2, 2, 6, 4>} : (tensor<1x2x1x6x4xf32>) -> tensor<1x2x2x6x4xf32>
  %k3 = top.reshape %k2 {shape = array<i64: 1, 4, 6, 4>} : (tensor<1x2x2x6x4xf32>) -> tensor<1x4x6x4xf32>
  %v1 = top.reshape %v {shape = array<i64: 1, 2, 1, 6, 3>} : (tensor<1x2x6x3xf32>) -> tensor<1x2x1x6x3xf32>
  %v2 = top.expand %v1 {shape = array<i64: 1, 2, 2, 6, 3>} : (tensor<1x2x1x6x3xf32>) -> tensor<1x2x2x6x3xf32>
  %v3 = top.reshape %v2 {shape = array<i64: 1, 4, 6, 3>} : (tensor<1x2x2x6x3xf32>) -> tensor<1x4x6x3xf32>
  %p = top.matmul %q, %k3 {transB = true} : (tensor<1x4x5x4xf32>, tensor<1x4x6x4xf32>) -> tensor<1x4x5x6xf32>
  %a = top.add %p, %mask : (tensor<1x4x5x6xf32>, tensor<1x1x5x6xf32>) -> tensor<1x4x5x6xf32>
  %m = top.softmax %a {axis = 3} : (tensor<1x4x5x6xf32>) -> tensor<1x4x5x6xf32>
  %y = top.matmul %m, %v3 : (tensor<1x4x5x6xf32>, tensor<1x4x6x3xf32>) -> tensor<1x4x5x3xf32>
  return %y : tensor<1x4x5x3xf32>
}

// -----

// Not attention: the probabilities are a result; no transpose produces the keys; the softmax is along another axis.
// CHECK-LABEL: @keeps
// CHECK-NOT: top.attention
// CHECK: return
func.func @keeps(%q: tensor<4x4xf32>, %k: tensor<4x4xf32>, %v: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = top.matmul %q, %k {transB = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = top.softmax %0 {axis = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = top.matmul %1, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = top.matmul %q, %k : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = top.softmax %3 {axis = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = top.matmul %4, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = top.matmul %q, %k {transB = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = top.softmax %6 {axis = 0} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %8 = top.matmul %7, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %2, %5, %8 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// The guard against fully masked rows is removed if the mask leaves something of each row.
// CHECK-LABEL: @guarded
// CHECK: top.attention %arg0, %arg1, %arg2, %{{.*}} {scale = 2.500000e-01 : f64}
// CHECK-NOT: top.is_nan
func.func @guarded(%q: tensor<1x2x2x4xf32>, %k: tensor<1x2x2x4xf32>, %v: tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32> {
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %zero = top.constant dense<0.0> : tensor<f32> : tensor<f32>
  %mask = top.constant dense<[[0.0, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %qs = top.mul %q, %half : (tensor<1x2x2x4xf32>, tensor<f32>) -> tensor<1x2x2x4xf32>
  %kt = top.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x2x4xf32>) -> tensor<1x2x4x2xf32>
  %ks = top.mul %kt, %half : (tensor<1x2x4x2xf32>, tensor<f32>) -> tensor<1x2x4x2xf32>
  %p = top.matmul %qs, %ks : (tensor<1x2x2x4xf32>, tensor<1x2x4x2xf32>) -> tensor<1x2x2x2xf32>
  %a = top.add %p, %mask : (tensor<1x2x2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2x2xf32>
  %m = top.softmax %a {axis = 3} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %n = top.is_nan %m : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xi1>
  %w = top.where %n, %zero, %m : (tensor<1x2x2x2xi1>, tensor<f32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %y = top.matmul %w, %v : (tensor<1x2x2x2xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  return %y : tensor<1x2x2x4xf32>
}

// -----

// The guard stays if the mask hides a whole row, or is not known: the result depends on it.
// CHECK-LABEL: @guard_needed
// CHECK-COUNT-2: top.is_nan
// CHECK-NOT: top.attention
func.func @guard_needed(%q: tensor<1x2x2x4xf32>, %k: tensor<1x2x2x4xf32>, %v: tensor<1x2x2x4xf32>, %unknown: tensor<2x2xf32>) -> (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) {
  %zero = top.constant dense<0.0> : tensor<f32> : tensor<f32>
  %mask = top.constant dense<[[0xFF800000, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %p = top.matmul %q, %k {transB = true} : (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x2x2xf32>
  %a = top.add %p, %mask : (tensor<1x2x2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2x2xf32>
  %m = top.softmax %a {axis = 3} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %n = top.is_nan %m : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xi1>
  %w = top.where %n, %zero, %m : (tensor<1x2x2x2xi1>, tensor<f32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %y = top.matmul %w, %v : (tensor<1x2x2x2xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  %p2 = top.matmul %q, %k {transB = true} : (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x2x2xf32>
  %a2 = top.add %p2, %unknown : (tensor<1x2x2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2x2xf32>
  %m2 = top.softmax %a2 {axis = 3} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %n2 = top.is_nan %m2 : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xi1>
  %w2 = top.where %n2, %zero, %m2 : (tensor<1x2x2x2xi1>, tensor<f32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %y2 = top.matmul %w2, %v : (tensor<1x2x2x2xf32>, tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32>
  return %y, %y2 : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>
}

// -----

// Two masks (shifted windows) are merged.
// CHECK-LABEL: @two_masks
// CHECK-NEXT: %[[M:.*]] = top.add %arg3, %arg4 : (tensor<1x2x5x6xf32>, tensor<3x1x5x6xf32>) -> tensor<3x2x5x6xf32>
// CHECK-NEXT: top.attention %arg0, %arg1, %arg2, %[[M]]
func.func @two_masks(%q: tensor<3x2x5x4xf32>, %k: tensor<3x2x6x4xf32>, %v: tensor<3x2x6x3xf32>, %m1: tensor<1x2x5x6xf32>, %m2: tensor<3x1x5x6xf32>) -> tensor<3x2x5x3xf32> {
  %p = top.matmul %q, %k {transB = true} : (tensor<3x2x5x4xf32>, tensor<3x2x6x4xf32>) -> tensor<3x2x5x6xf32>
  %a1 = top.add %p, %m1 : (tensor<3x2x5x6xf32>, tensor<1x2x5x6xf32>) -> tensor<3x2x5x6xf32>
  %a2 = top.add %a1, %m2 : (tensor<3x2x5x6xf32>, tensor<3x1x5x6xf32>) -> tensor<3x2x5x6xf32>
  %m = top.softmax %a2 {axis = 3} : (tensor<3x2x5x6xf32>) -> tensor<3x2x5x6xf32>
  %y = top.matmul %m, %v : (tensor<3x2x5x6xf32>, tensor<3x2x6x3xf32>) -> tensor<3x2x5x3xf32>
  return %y : tensor<3x2x5x3xf32>
}
