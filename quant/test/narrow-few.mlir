// RUN: tessera-opt %s --top-quantize=precision=BF16 | FileCheck %s
// RUN: tessera-opt %s --top-quantize=precision=F16 | FileCheck %s --check-prefix=F16
// SPDX-License-Identifier: Apache-2.0

// In bf16 a sum of few products reads f32 with f32 weights, also what was only moved to it; its result is rounded as others.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[V:.*]] = top.constant dense<3.000000e-01> : tensor<4x1x3x3xf32>
// CHECK-DAG: top.constant dense<{{.*}}> : tensor<4x4x3x3xbf16>
// CHECK: %[[A:.*]] = top.conv
// CHECK-NEXT: %[[P:.*]] = top.slice %[[A]]
// CHECK-NEXT: %[[D:.*]] = top.conv %[[P]], %[[V]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[D]] {to = bf16
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]] {to = f32}
// CHECK: top.conv %[[F]]

// F16-LABEL: func.func @main
// F16-DAG: top.constant dense<{{.*}}> : tensor<4x1x3x3xf16>
// F16: %[[A:.*]] = top.conv
// F16-NEXT: top.cast %[[A]] {to = f16
func.func @main(%x: tensor<1x4x6x6xf32> {top.name = "x"}) -> (tensor<1x4x3x4xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<4x4x3x3xf32> : tensor<4x4x3x3xf32>
  %v = top.constant dense<0.3> : tensor<4x1x3x3xf32> : tensor<4x1x3x3xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  %p = top.slice %a {starts = array<i64: 0, 0, 1, 0>, sizes = array<i64: 1, 4, 5, 6>, steps = array<i64: 1, 1, 1, 1>, top.outputs = ["p"]} : (tensor<1x4x6x6xf32>) -> tensor<1x4x5x6xf32>
  %d = top.conv %p, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 4 : i64, top.outputs = ["d"]} : (tensor<1x4x5x6xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x3x4xf32>
  %y = top.conv %d, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x4x3x4xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x3x4xf32>
  return %y : tensor<1x4x3x4xf32>
}
