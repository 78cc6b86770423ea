// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --top-quantize="precision=W4A8" --split-input-file | FileCheck %s --check-prefixes=CHECK,W4
// RUN: tessera-opt %s --top-quantize="precision=W8A8" --split-input-file | FileCheck %s --check-prefixes=CHECK,W8

// Weights get blocks of 32 entries of K; the last one has 8 here. The last matmul keeps 8 bits.
// CHECK-LABEL: func.func @main
// W4: %[[W:.*]] = top.constant dense<-8> : tensor<40x2xi8>
// W4: %[[S:.*]] = top.constant dense<-1.250000e-01> : tensor<2x2xf32>
// W8: %[[W:.*]] = top.constant dense<{{.*}}> : tensor<40x2xi8>
// W8: %[[S:.*]] = top.constant dense<{{.*}}> : tensor<2x2xf32>
// CHECK: %[[H:.*]] = top.block_matmul %arg0, %[[W]], %[[S]] {block = 32 : i64
// CHECK: %[[B:.*]] = top.add %[[H]]
// CHECK: %[[R:.*]] = top.clip %[[B]]
// CHECK: %[[V:.*]] = top.constant dense<{{\[}}[64, 95], [127, 127]]> : tensor<2x2xi8>
// CHECK: top.block_matmul %[[R]], %[[V]], %{{.*}} {block = 16 : i64
func.func @main(%x: tensor<3x40xf32> {top.name = "x"}) -> (tensor<3x2xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<40x2xf32> : tensor<40x2xf32>
  %v = top.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %b = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %h = top.matmul %x, %w, %b {relu = true, top.outputs = ["h"]} : (tensor<3x40xf32>, tensor<40x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %y = top.matmul %h, %v {transB = true, top.outputs = ["y"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// The integers of a file keep their bits. Nibbles with an addend become unsigned ones with a minimum that is an f16:
// 3 * 0.5 - 3.75 = 11 * 0.5 - 7.75.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = top.constant dense<{{\[}}[11, 0], [8, 15]]> : tensor<2x2xi8>
// CHECK: %[[M:.*]] = top.constant dense<{{\[}}[-7.750000e+00, 0.000000e+00]]> : tensor<1x2xf32>
// CHECK: top.block_matmul %arg0, %[[W]], %{{.*}}, %[[M]] {block = 16 : i64
func.func @main(%x: tensor<3x2xf32> {top.name = "x"}) -> (tensor<3x2xf32> {top.name = "y"}) {
  %q = top.constant dense<[[[3, 0]], [[-8, 7]]]> : tensor<2x1x2xi8> : tensor<2x1x2xi8>
  %s = top.constant dense<[[[0.5]], [[0.25]]]> : tensor<2x1x1xf32> : tensor<2x1x1xf32>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %m = top.constant dense<[[[-3.75]], [[2.0]]]> : tensor<2x1x1xf32> : tensor<2x1x1xf32>
  %d = top.dequantize %q, %s, %z : (tensor<2x1x2xi8>, tensor<2x1x1xf32>, tensor<i8>) -> tensor<2x1x2xf32>
  %e = top.add %d, %m : (tensor<2x1x2xf32>, tensor<2x1x1xf32>) -> tensor<2x1x2xf32>
  %w = top.reshape %e {shape = array<i64: 2, 2>} : (tensor<2x1x2xf32>) -> tensor<2x2xf32>
  %y = top.matmul %x, %w {transB = true, top.outputs = ["y"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
