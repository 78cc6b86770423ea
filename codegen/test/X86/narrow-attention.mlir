// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-narrow-attention --split-input-file | FileCheck %s

// The ops that compute q, k and v round them, also through reshapes, if attention is their only user.
// CHECK-LABEL: func.func @rounded
// CHECK: %[[V:.*]] = device.map(%arg2)
// CHECK: %[[X:.*]] = device.matmul %arg0, %arg1 epilogue
// CHECK: arith.truncf
// CHECK: -> tensor<1x5x12xbf16>
// CHECK: %[[R:.*]] = device.reshape %[[X]] : (tensor<1x5x12xbf16>) -> tensor<5x3x4xbf16>
// CHECK: device.attention %[[R]], %[[R]], %[[V]], %arg3 {{.*}} : (tensor<5x3x4xbf16>, tensor<5x3x4xbf16>, tensor<5x3x4xbf16>, tensor<3x3xf32>) -> tensor<5x3x4xf32>
// CHECK: return {{.*}}, %arg2
func.func @rounded(%x: tensor<1x5x8xf32>, %w: tensor<8x12xf32>, %v: tensor<5x3x4xf32>, %m: tensor<3x3xf32>) -> (tensor<5x3x4xbf16>, tensor<5x3x4xf32>) {
  %p = device.matmul %x, %w : (tensor<1x5x8xf32>, tensor<8x12xf32>) -> tensor<1x5x12xf32>
  %q = device.reshape %p : (tensor<1x5x12xf32>) -> tensor<5x3x4xf32>
  %a = device.attention %q, %q, %v, %m {scale = 0.5 : f64} : (tensor<5x3x4xf32>, tensor<5x3x4xf32>, tensor<5x3x4xf32>, tensor<3x3xf32>) -> tensor<5x3x4xf32>
  %y = device.map (%a) {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to bf16
    device.yield %n : bf16
  } : (tensor<5x3x4xf32>) -> tensor<5x3x4xbf16>
  return %y, %v : tensor<5x3x4xbf16>, tensor<5x3x4xf32>
}

// -----

// f32 results, odd depths and exact functions are unchanged.
// CHECK-LABEL: func.func @single
// CHECK: device.attention {{.*}} : (tensor<5x3x4xf32>, tensor<5x3x4xf32>, tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
func.func @single(%q: tensor<5x3x4xf32>) -> tensor<5x3x4xf32> {
  %a = device.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<5x3x4xf32>, tensor<5x3x4xf32>, tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
  return %a : tensor<5x3x4xf32>
}

// CHECK-LABEL: func.func @odd
// CHECK: device.attention {{.*}} : (tensor<5x3x3xf32>, tensor<5x3x3xf32>, tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
func.func @odd(%q: tensor<5x3x3xf32>) -> tensor<5x3x3xbf16> {
  %a = device.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<5x3x3xf32>, tensor<5x3x3xf32>, tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
  %y = device.map (%a) {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to bf16
    device.yield %n : bf16
  } : (tensor<5x3x3xf32>) -> tensor<5x3x3xbf16>
  return %y : tensor<5x3x3xbf16>
}

// CHECK-LABEL: func.func @exact
// CHECK: device.attention {{.*}} : (tensor<5x3x4xf32>, tensor<5x3x4xf32>, tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
func.func @exact(%q: tensor<5x3x4xf32>) -> tensor<5x3x4xbf16> attributes {device.exact} {
  %a = device.attention %q, %q, %q {scale = 0.5 : f64} : (tensor<5x3x4xf32>, tensor<5x3x4xf32>, tensor<5x3x4xf32>) -> tensor<5x3x4xf32>
  %y = device.map (%a) {
  ^bb0(%e: f32):
    %n = arith.truncf %e : f32 to bf16
    device.yield %n : bf16
  } : (tensor<5x3x4xf32>) -> tensor<5x3x4xbf16>
  return %y : tensor<5x3x4xbf16>
}
