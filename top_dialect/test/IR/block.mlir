// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: func.func @block_matmul
// CHECK: top.block_matmul %arg0, %arg1, %arg2 {block = 32 : i64} : (tensor<2x?x40xf32, {{.*}}>, tensor<40x8xi8>, tensor<2x8xf32>) -> tensor<2x?x8xf32
// CHECK: top.block_matmul %arg0, %arg1, %arg2, %arg2 {block = 32 : i64}
func.func @block_matmul(%x: tensor<2x?x40xf32, #top.dims<[2, m[1:9], 40]>>, %w: tensor<40x8xi8>, %s: tensor<2x8xf32>) {
  %0 = top.block_matmul %x, %w, %s {block = 32 : i64} : (tensor<2x?x40xf32, #top.dims<[2, m[1:9], 40]>>, tensor<40x8xi8>, tensor<2x8xf32>) -> tensor<2x?x8xf32, #top.dims<[2, m[1:9], 8]>>
  %1 = top.block_matmul %x, %w, %s, %s {block = 32 : i64} : (tensor<2x?x40xf32, #top.dims<[2, m[1:9], 40]>>, tensor<40x8xi8>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x?x8xf32, #top.dims<[2, m[1:9], 8]>>
  return
}
