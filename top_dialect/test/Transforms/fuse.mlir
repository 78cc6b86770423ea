// RUN: tessera-opt %s --top-fuse-bias --top-fuse-activation --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// CHECK-LABEL: @matmul_bias_relu
// CHECK: %[[B:.*]] = top.constant dense<[3.000000e+00, 5.000000e+00]> : tensor<2xf32>
// CHECK: top.matmul %arg0, %{{.*}}, %[[B]] {relu = true, top.outputs = ["y"]}
// CHECK-NEXT: return
func.func @matmul_bias_relu(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %w = top.constant dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %b = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %c = top.constant dense<[[2.0, 3.0]]> : tensor<1x2xf32> : tensor<1x2xf32>
  %0 = top.matmul %x, %w : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %1 = top.add %b, %0 : (tensor<2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  %2 = top.add %1, %c : (tensor<5x2xf32>, tensor<1x2xf32>) -> tensor<5x2xf32>
  %3 = top.relu %2 {top.outputs = ["y"]} : (tensor<5x2xf32>) -> tensor<5x2xf32>
  return %3 : tensor<5x2xf32>
}

// -----

// relu6, and a smaller limit after a relu.
// CHECK-LABEL: @conv_clip
// CHECK: top.conv {{.*}}relu = true, reluLimit = 6.000000e+00
// CHECK-NEXT: top.conv {{.*}}relu = true, reluLimit = 1.000000e+00
// CHECK-NEXT: return
func.func @conv_clip(%x: tensor<1x1x8xf32>) -> tensor<1x1x8xf32> {
  %w = top.constant dense<1.0> : tensor<1x1x1xf32> : tensor<1x1x1xf32>
  %0 = top.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x8xf32>, tensor<1x1x1xf32>) -> tensor<1x1x8xf32>
  %1 = top.clip %0 {lo = 0.0 : f64, hi = 6.0 : f64} : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %2 = top.conv %1, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x8xf32>, tensor<1x1x1xf32>) -> tensor<1x1x8xf32>
  %3 = top.relu %2 : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %4 = top.clip %3 {lo = 0.0 : f64, hi = 1.0 : f64} : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  return %4 : tensor<1x1x8xf32>
}

// -----

// Not fused: a mask added to a product of two activations, which is not a bias; a sum with another user before the
// relu; a clip from below zero, which is not a rectifier.
// CHECK-LABEL: @keeps
// CHECK: top.matmul
// CHECK-NEXT: top.add
// CHECK-NEXT: top.relu
// CHECK-NEXT: top.matmul
// CHECK-NEXT: top.clip
func.func @keeps(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %mask = top.constant dense<[0.0, -1.0]> : tensor<2xf32> : tensor<2xf32>
  %0 = top.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = top.add %0, %mask : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %2 = top.relu %1 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = top.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = top.clip %3 {lo = -1.0 : f64, hi = 1.0 : f64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1, %2, %4 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
