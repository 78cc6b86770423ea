// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @block_matmul_c1(%x: tensor<4xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xf32>) {
  // expected-error @below {{x has rank 1 and w has rank 2, allowed are 2 or more and 2 (C1)}}
  %0 = top.block_matmul %x, %w, %s {block = 4 : i64} : (tensor<4xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @block_matmul_c2(%x: tensor<3x5xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xf32>) {
  // expected-error @below {{inner dims are 5 of 3x5 and 4 of 4x2, they must be equal (C2)}}
  %0 = top.block_matmul %x, %w, %s {block = 4 : i64} : (tensor<3x5xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @block_matmul_c3(%x: tensor<3x4xf32>, %w: tensor<4x2xi8>, %s: tensor<1x2xf32>) {
  // expected-error @below {{block is 0, allowed are 1 to 65536 (C3)}}
  %0 = top.block_matmul %x, %w, %s {block = 0 : i64} : (tensor<3x4xf32>, tensor<4x2xi8>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @block_matmul_c4(%x: tensor<3x4xf32>, %w: tensor<4x2xi8>, %s: tensor<2x2xf32>, %m: tensor<1x2xf32>) {
  // expected-error @below {{scales or mins are 1x2, but must be 2x2 (C4)}}
  %0 = top.block_matmul %x, %w, %s, %m {block = 2 : i64} : (tensor<3x4xf32>, tensor<4x2xi8>, tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @block_matmul_c5(%x: tensor<3x4xf32>, %w: tensor<4x2xui8>, %s: tensor<2x2xf32>) {
  // expected-error @below {{multiplies 'f32' and 'ui8', but must multiply f32 and i8 (C5)}}
  %0 = top.block_matmul %x, %w, %s {block = 2 : i64} : (tensor<3x4xf32>, tensor<4x2xui8>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return
}
