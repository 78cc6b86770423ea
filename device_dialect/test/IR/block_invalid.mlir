// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @block_matmul_c1(%x: tensor<4xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{ranks of x and w are 1, 2, allowed 2 or more and 2 (block_matmul_c1)}}
  %y = device.block_matmul %x, %w scales %s {block = 4 : i64} : (tensor<4xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @block_matmul_c2(%x: tensor<3x5xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{x has K = 5, w has K = 4 (block_matmul_c2)}}
  %y = device.block_matmul %x, %w scales %s {block = 4 : i64} : (tensor<3x5xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @block_matmul_c3(%x: tensor<3x4xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{block is 65537, allowed 1 to 65536 (block_matmul_c3)}}
  %y = device.block_matmul %x, %w scales %s {block = 65537 : i64} : (tensor<3x4xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @block_matmul_c4_none(%x: tensor<3x4xf32>, %w: tensor<4x2xi8>) -> tensor<3x2xf32> {
  // expected-error @+1 {{has no scales, allowed only with packed weights (block_matmul_c4)}}
  %y = device.block_matmul %x, %w {block = 4 : i64} : (tensor<3x4xf32>, tensor<4x2xi8>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @block_matmul_c4(%x: tensor<3x4xf32>, %w: tensor<4x2xi8>, %s: tensor<2x2xf32>, %m: tensor<1x2xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{mins}}
  %y = device.block_matmul %x, %w scales %s mins %m {block = 2 : i64} : (tensor<3x4xf32>, tensor<4x2xi8>, tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @block_matmul_c5(%x: tensor<3x4xf32>, %w: tensor<4x2xi16>, %s: tensor<1x2xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{multiplies 'f32' and 'i16', allowed f32 and i8 (block_matmul_c5)}}
  %y = device.block_matmul %x, %w scales %s {block = 4 : i64} : (tensor<3x4xf32>, tensor<4x2xi16>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @block_matmul_c5_scales(%x: tensor<3x4xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xi32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{scales are 'i32', allowed f32 (block_matmul_c5)}}
  %y = device.block_matmul %x, %w scales %s {block = 4 : i64} : (tensor<3x4xf32>, tensor<4x2xi8>, tensor<1x2xi32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @block_matmul_c6(%x: tensor<3x4xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xf32>) -> tensor<3x3xf32> {
  // expected-error @+1 {{result}}
  %y = device.block_matmul %x, %w scales %s {block = 4 : i64} : (tensor<3x4xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
}
