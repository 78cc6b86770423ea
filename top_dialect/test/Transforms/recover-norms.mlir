// RUN: tessera-opt %s --top-recover-norms --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// The form of torch, with its cast before the square.
// CHECK-LABEL: @layer_norm
// CHECK: %[[Y:.*]] = top.layer_norm %arg0 scale %{{.*}} bias %{{.*}} {axis = 2 : i64, epsilon = {{.*}}, top.outputs = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm(%x: tensor<1x8x4xf32>) -> tensor<1x8x4xf32> {
  %eps = top.constant dense<1.0e-05> : tensor<f32> : tensor<f32>
  %two = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %scale = top.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  %bias = top.constant dense<[[[5.0, 6.0, 7.0, 8.0]]]> : tensor<1x1x4xf32> : tensor<1x1x4xf32>
  %mean = top.reduce %x {kind = 1 : i32, axes = array<i64: 2>} : (tensor<1x8x4xf32>) -> tensor<1x8x1xf32>
  %d = top.sub %x, %mean : (tensor<1x8x4xf32>, tensor<1x8x1xf32>) -> tensor<1x8x4xf32>
  %c = top.cast %d {to = f32} : (tensor<1x8x4xf32>) -> tensor<1x8x4xf32>
  %sq = top.pow %c, %two : (tensor<1x8x4xf32>, tensor<f32>) -> tensor<1x8x4xf32>
  %var = top.reduce %sq {kind = 1 : i32, axes = array<i64: 2>} : (tensor<1x8x4xf32>) -> tensor<1x8x1xf32>
  %e = top.add %var, %eps : (tensor<1x8x1xf32>, tensor<f32>) -> tensor<1x8x1xf32>
  %r = top.sqrt %e : (tensor<1x8x1xf32>) -> tensor<1x8x1xf32>
  %n = top.div %d, %r : (tensor<1x8x4xf32>, tensor<1x8x1xf32>) -> tensor<1x8x4xf32>
  %s = top.mul %n, %scale : (tensor<1x8x4xf32>, tensor<4xf32>) -> tensor<1x8x4xf32>
  %y = top.add %bias, %s {top.outputs = ["y"]} : (tensor<1x1x4xf32>, tensor<1x8x4xf32>) -> tensor<1x8x4xf32>
  return %y : tensor<1x8x4xf32>
}

// -----

// Over two dims, d * rsqrt(var), without a scale; the residual addition after it is not a bias.
// CHECK-LABEL: @layer_norm_plain
// CHECK: %[[N:.*]] = top.layer_norm %arg0 {axis = 1 : i64
// CHECK-NEXT: top.add %[[N]], %arg0
func.func @layer_norm_plain(%x: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %eps = top.constant dense<1.0e-05> : tensor<f32> : tensor<f32>
  %mean = top.reduce %x {kind = 1 : i32, axes = array<i64: 1, 2>} : (tensor<2x8x4xf32>) -> tensor<2x1x1xf32>
  %d = top.sub %x, %mean : (tensor<2x8x4xf32>, tensor<2x1x1xf32>) -> tensor<2x8x4xf32>
  %sq = top.mul %d, %d : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %var = top.reduce %sq {kind = 1 : i32, axes = array<i64: 1, 2>} : (tensor<2x8x4xf32>) -> tensor<2x1x1xf32>
  %e = top.add %eps, %var : (tensor<f32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %r = top.rsqrt %e : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %n = top.mul %r, %d : (tensor<2x1x1xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %y = top.add %n, %x : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %y : tensor<2x8x4xf32>
}

// -----

// x (scale rsqrt) + (bias - mean scale rsqrt), as TensorFlow writes it.
// CHECK-LABEL: @layer_norm_expanded
// CHECK: top.layer_norm %arg0 scale %{{.*}} bias %{{.*}} {axis = 1 : i64
// CHECK-NEXT: return
func.func @layer_norm_expanded(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %eps = top.constant dense<1.0e-05> : tensor<f32> : tensor<f32>
  %scale = top.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  %bias = top.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32> : tensor<4xf32>
  %mean = top.reduce %x {kind = 1 : i32, axes = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %d = top.sub %x, %mean : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %sq = top.mul %d, %d : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %var = top.reduce %sq {kind = 1 : i32, axes = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %e = top.add %var, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %r = top.rsqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %a = top.mul %r, %scale : (tensor<8x1xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %xa = top.mul %x, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %ma = top.mul %mean, %a : (tensor<8x1xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %b = top.sub %bias, %ma : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = top.add %xa, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: @rms_norm
// CHECK: top.layer_norm %arg0 scale %{{.*}} {axis = 1 : i64, epsilon = {{.*}}, rms = true}
// CHECK-NEXT: return
func.func @rms_norm(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %eps = top.constant dense<1.0e-05> : tensor<f32> : tensor<f32>
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %two = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %scale = top.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  %sq = top.pow %x, %two : (tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %ms = top.reduce %sq {kind = 1 : i32, axes = array<i64: 1>} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %e = top.add %ms, %eps : (tensor<8x1xf32>, tensor<f32>) -> tensor<8x1xf32>
  %r = top.sqrt %e : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %i = top.div %one, %r : (tensor<f32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %n = top.mul %x, %i : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  %y = top.mul %scale, %n : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// Not a norm: not over the trailing dims; the mean of another value; a sum instead of a mean.
// CHECK-LABEL: @keeps
// CHECK-NOT: top.layer_norm
// CHECK: return
func.func @keeps(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %eps = top.constant dense<1.0e-05> : tensor<f32> : tensor<f32>
  %0 = top.mul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = top.reduce %0 {kind = 1 : i32, axes = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<1x4xf32>
  %2 = top.add %1, %eps : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>
  %3 = top.rsqrt %2 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = top.mul %x, %3 : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %5 = top.reduce %0 {kind = 1 : i32, axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %6 = top.add %5, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %7 = top.rsqrt %6 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %8 = top.mul %z, %7 : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %9 = top.reduce %0 {kind = 0 : i32, axes = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %10 = top.add %9, %eps : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %11 = top.rsqrt %10 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %12 = top.mul %x, %11 : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %4, %8, %12 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// CHECK-LABEL: @l2
// CHECK-NEXT: top.reduce %arg0 {axes = array<i64: 1>, keepDims = false, kind = 6 : i32}
// CHECK-NEXT: return
func.func @l2(%x: tensor<8x4xf32>) -> tensor<8xf32> {
  %sq = top.mul %x, %x : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %s = top.reduce %sq {kind = 0 : i32, axes = array<i64: 1>, keepDims = false} : (tensor<8x4xf32>) -> tensor<8xf32>
  %y = top.sqrt %s : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// The mean over the last dim and the variance over the last two: not a norm, though each is part of one.
// CHECK-LABEL: @keeps_other_axes
// CHECK-NOT: top.layer_norm
// CHECK: return
func.func @keeps_other_axes(%x: tensor<2x3x4xf32>, %scale: tensor<4xf32>, %bias: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %eps = top.constant dense<1.0e-05> : tensor<f32> : tensor<f32>
  %mean = top.reduce %x {kind = 1 : i32, axes = array<i64: 2>} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %c = top.sub %x, %mean : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %sq = top.mul %c, %c : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %var = top.reduce %sq {kind = 1 : i32, axes = array<i64: 1, 2>} : (tensor<2x3x4xf32>) -> tensor<2x1x1xf32>
  %v = top.add %var, %eps : (tensor<2x1x1xf32>, tensor<f32>) -> tensor<2x1x1xf32>
  %r = top.rsqrt %v : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %a = top.mul %r, %scale : (tensor<2x1x1xf32>, tensor<4xf32>) -> tensor<2x1x4xf32>
  %xa = top.mul %x, %a : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  %ma = top.mul %mean, %a : (tensor<2x3x1xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  %shift = top.sub %bias, %ma : (tensor<4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = top.add %xa, %shift : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// The exponents turn the row into a matrix, whose norm is that of the row three times.
// CHECK-LABEL: @keeps_square_that_grows
// CHECK: top.pow
// CHECK: top.sqrt
func.func @keeps_square_that_grows(%x: tensor<4xf32>) -> tensor<3xf32> {
  %two = top.constant dense<2.0> : tensor<3x1xf32> : tensor<3x1xf32>
  %sq = top.pow %x, %two : (tensor<4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %s = top.reduce %sq {kind = 0 : i32, axes = array<i64: 1>, keepDims = false} : (tensor<3x4xf32>) -> tensor<3xf32>
  %y = top.sqrt %s : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
