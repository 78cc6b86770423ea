// RUN: tessera-opt %s --top-quantize=precision=W8 --split-input-file | FileCheck %s --check-prefixes=CHECK,W8
// RUN: tessera-opt %s --top-quantize="precision=W4 group-size=16" --split-input-file | FileCheck %s --check-prefixes=CHECK,W4
// RUN: not tessera-opt %s --top-quantize="precision=W4 group-size=24" --split-input-file 2>&1 | FileCheck %s --check-prefix=BAD
// SPDX-License-Identifier: Apache-2.0

// BAD: group size 24; allowed: multiples of 16

// One scale per column, or per column and 16 rows. The last group of 20 rows is padded, and cropped after
// dequantisation.
// CHECK-LABEL: func.func @main
// W8-DAG: %[[Q:.*]] = top.constant dense<127> : tensor<20x2xi8>
// W8-DAG: %[[S:.*]] = top.constant dense<0.00787401571> : tensor<1x2xf32>
// W8: %[[W:.*]] = top.dequantize %[[Q]], %[[S]], %{{.*}} -> tensor<20x2xf32>
// W4-DAG: %[[Q:.*]] = top.constant dense{{.*}} : tensor<2x16x2xi8>
// W4-DAG: %[[S:.*]] = top.constant dense<-1.250000e-01> : tensor<2x1x2xf32>
// W4: %[[D:.*]] = top.dequantize %[[Q]], %[[S]], %{{.*}} -> tensor<2x16x2xf32>
// W4: %[[R:.*]] = top.reshape %[[D]] {{.*}} -> tensor<32x2xf32>
// W4: %[[W:.*]] = top.slice %[[R]] {{.*}} -> tensor<20x2xf32>
// CHECK: top.matmul %{{.*}}, %[[W]]
func.func @main(%x: tensor<3x20xf32> {top.name = "x"}) -> (tensor<2x2xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<20x2xf32> : tensor<20x2xf32>
  %h = top.matmul %x, %w {top.outputs = ["h"]} : (tensor<3x20xf32>, tensor<20x2xf32>) -> tensor<3x2xf32>
  %t = top.transpose %h {perm = array<i64: 1, 0>, top.outputs = ["t"]} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %y = top.matmul %t, %h {top.outputs = ["y"]} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// A table from which rows are gathered has one scale per row and 8 bits in both W8 and W4.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[Q:.*]] = top.constant dense{{.*}}127, 64{{.*}} : tensor<2x2xi8>
// CHECK-DAG: %[[S:.*]] = top.constant dense<{{.*}}> : tensor<2x1xf32>
// CHECK: %[[T:.*]] = top.dequantize %[[Q]], %[[S]]
// CHECK: top.gather %[[T]]
func.func @main(%i: tensor<3xi64> {top.name = "i"}) -> (tensor<3x2xf32> {top.name = "y"}) {
  %t = top.constant dense<[[1.27, 0.64], [0.5, -25.4]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.gather %t, %i {axis = 0 : i64, top.outputs = ["y"]} : (tensor<2x2xf32>, tensor<3xi64>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// Infinity and NaN, at any position, do not have an integer form; the largest finite floats do.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: top.dequantize
// CHECK-NOT: top.dequantize
func.func @main(%x: tensor<3x2xf32> {top.name = "x"}) -> (tensor<3x2xf32> {top.name = "y"}) {
  %a = top.constant dense<[[1.0, 2.0], [1.0, 0x7F800000]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %b = top.constant dense<[[0xFF800000, 2.0], [1.0, 1.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %c = top.constant dense<[[1.0, 0x7FC00000], [1.0, 1.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %d = top.constant dense<[[1.0, 0x7F7FFFFF], [0xFF7FFFFF, 1.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %p = top.matmul %x, %a {top.outputs = ["p"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %q = top.matmul %p, %b {top.outputs = ["q"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %r = top.matmul %q, %c {top.outputs = ["r"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %y = top.matmul %r, %d {top.outputs = ["y"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
