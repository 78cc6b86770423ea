// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-pack-blocks --split-input-file | FileCheck %s
// RUN: tessera-opt %s --x86-pack-blocks --split-input-file | tessera-opt --split-input-file | FileCheck %s

// Nibbles of 8 entries of K share 4 bytes per column: in the first bytes, 1 of K = 0 and 3 of K = 4. Padding stands for
// 0, which is 8 above the lowest weight. Scales of f16 follow the weights.
// CHECK-LABEL: func.func @nibbles
// CHECK: %[[W:.*]] = top.constant dense<"0xB988888808888888{{.*}}"> : tensor<160xi8>
// CHECK: device.block_matmul %arg0, %[[W]] {
// CHECK-SAME: block = 16 : i64, packing = #x86.block_packing<i4, shape = [5, 2], block = 16, lowest = -8, mins = false, halves = true>
func.func @nibbles(%x: tensor<4x5xf32>) -> tensor<4x2xf32> {
  %w = top.constant dense<[[1, 0], [0, 0], [0, 0], [0, 0], [3, -8]]> : tensor<5x2xi8> : tensor<5x2xi8>
  %s = top.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32> : tensor<1x2xf32>
  %y = device.block_matmul %x, %w scales %s {block = 16 : i64} : (tensor<4x5xf32>, tensor<5x2xi8>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

// Other integers are bytes; a scale that is no f16 keeps all of them, and the mins, in f32.
// CHECK-LABEL: func.func @bytes
// CHECK: packing = #x86.block_packing<i8, shape = [5, 2], block = 16, lowest = -128, mins = true, halves = false>{{.*}} tensor<384xi8>
func.func @bytes(%x: tensor<4x5xf32>) -> tensor<4x2xf32> {
  %w = top.constant dense<[[1, 0], [0, 0], [0, 0], [0, 0], [3, 16]]> : tensor<5x2xi8> : tensor<5x2xi8>
  %s = top.constant dense<[[1.0, 0.1]]> : tensor<1x2xf32> : tensor<1x2xf32>
  %y = device.block_matmul %x, %w scales %s mins %s {block = 16 : i64} : (tensor<4x5xf32>, tensor<5x2xi8>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

// Blocks that no fast kernel reads, and weights of the run, are not packed.
// CHECK-LABEL: func.func @others
// CHECK-NOT: packing
func.func @others(%x: tensor<4x5xf32>, %v: tensor<5x2xi8>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %w = top.constant dense<1> : tensor<5x2xi8> : tensor<5x2xi8>
  %s = top.constant dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %t = top.constant dense<1.0> : tensor<1x2xf32> : tensor<1x2xf32>
  %y = device.block_matmul %x, %w scales %s {block = 4 : i64} : (tensor<4x5xf32>, tensor<5x2xi8>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %z = device.block_matmul %x, %v scales %t {block = 16 : i64} : (tensor<4x5xf32>, tensor<5x2xi8>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %y, %z : tensor<4x2xf32>, tensor<4x2xf32>
}
