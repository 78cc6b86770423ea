// RUN: tessera-opt %s --split-input-file --top-quantize=precision=BF16 | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: tessera-opt %s --split-input-file --top-quantize=precision=F16 | sed s/f16/bf16/g | FileCheck %s --check-prefixes=CHECK,F16
// SPDX-License-Identifier: Apache-2.0

// A convolution that sums few products reads f32 with f32 weights, also through ops that only move data; its result is
// rounded as usual.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[V:.*]] = top.constant dense<3.000000e-01> : tensor<3x1x3x3xf32>
// CHECK-DAG: top.constant dense<{{.*}}> : tensor<3x3x5x5xbf16>
// CHECK: %[[A:.*]] = top.conv
// CHECK-NEXT: %[[P:.*]] = top.slice %[[A]]
// CHECK-NEXT: %[[D:.*]] = top.conv %[[P]], %[[V]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[D]] {to = bf16
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]] {to = f32}
// CHECK: top.conv %[[F]]

func.func @main(%x: tensor<1x3x6x6xf32> {top.name = "x"}) -> (tensor<1x3x3x4xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<3x3x5x5xf32> : tensor<3x3x5x5xf32>
  %v = top.constant dense<0.3> : tensor<3x1x3x3xf32> : tensor<3x1x3x3xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x3x6x6xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x6x6xf32>
  %p = top.slice %a {starts = array<i64: 0, 0, 1, 0>, sizes = array<i64: 1, 3, 5, 6>, steps = array<i64: 1, 1, 1, 1>, top.outputs = ["p"]} : (tensor<1x3x6x6xf32>) -> tensor<1x3x5x6xf32>
  %d = top.conv %p, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 3 : i64, top.outputs = ["d"]} : (tensor<1x3x5x6xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x3x4xf32>
  %y = top.conv %d, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x3x3x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x3x4xf32>
  return %y : tensor<1x3x3x4xf32>
}

// -----

// 36 products are enough for f16, whose rounding errors are smaller.
// CHECK-LABEL: func.func @main
// BF16: top.constant {{.*}} : tensor<4x4x3x3xf32>
// F16: top.constant {{.*}} : tensor<4x4x3x3xbf16>

func.func @main(%x: tensor<1x4x6x6xf32> {top.name = "x"}) -> (tensor<1x4x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<4x4x3x3xf32> : tensor<4x4x3x3xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  return %y : tensor<1x4x4x4xf32>
}
