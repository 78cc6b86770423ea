// SPDX-License-Identifier: Apache-2.0
// RUN: not tessera-opt %s --x86-emit-kernels="chip=x86-avx2" --split-input-file 2>&1 | FileCheck %s

// CHECK: has weights packed as #x86.packing<matrix, i8x4, shape = [4, 16], tile = 6 x 16>, but x86-avx2 does not support dot products of bytes
func.func @dots(%a: tensor<2x4xi8>) -> tensor<2x16xi32> {
  %b = top.constant dense<1> : tensor<64xi8> : tensor<64xi8>
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, i8x4, shape = [4, 16], tile = 6 x 16>} : (tensor<2x4xi8>, tensor<64xi8>) -> tensor<2x16xi32>
  return %y : tensor<2x16xi32>
}

// -----

// CHECK: has weights packed as #x86.packing<matrix, f32, shape = [4, 16], tile = 28 x 16>, but the registers of x86-avx2 hold 6 rows of such a tile
func.func @tile(%a: tensor<2x4xf32>) -> tensor<2x16xf32> {
  %b = top.constant dense<1.0> : tensor<64xf32> : tensor<64xf32>
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, f32, shape = [4, 16], tile = 28 x 16>} : (tensor<2x4xf32>, tensor<64xf32>) -> tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}

// -----

// CHECK: has weights packed as #x86.packing<matrix, bf16x2, shape = [4, 16], tile = 6 x 16>, but x86-avx2 does not support dot products of bf16
func.func @pairs(%a: tensor<2x4xbf16>) -> tensor<2x16xf32> {
  %b = top.constant dense<1.0> : tensor<64xbf16> : tensor<64xbf16>
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, bf16x2, shape = [4, 16], tile = 6 x 16>} : (tensor<2x4xbf16>, tensor<64xbf16>) -> tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}

// -----

// CHECK: has weights packed as #x86.packing<matrix, i8x4, shape = [64, 16], tile = 32 x 16, chunk = 64>, but x86-avx2 does not support AMX tiles
func.func @tiles(%a: tensor<32x64xi8>) -> tensor<32x16xi32> {
  %b = top.constant dense<1> : tensor<1024xi8> : tensor<1024xi8>
  %y = device.matmul %a, %b {packing = #x86.packing<matrix, i8x4, shape = [64, 16], tile = 32 x 16, chunk = 64>} : (tensor<32x64xi8>, tensor<1024xi8>) -> tensor<32x16xi32>
  return %y : tensor<32x16xi32>
}
