// RUN: tessera-opt %s --top-quantize=precision=BF16 | FileCheck %s
// RUN: tessera-opt %s --top-quantize=precision=F16 | FileCheck %s --check-prefix=F16
// SPDX-License-Identifier: Apache-2.0

// A convolution that sums few products reads f32 with f32 weights, also what was only moved to it; its result is rounded as others.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[V:.*]] = top.constant dense<3.000000e-01> : tensor<3x1x3x3xf32>
// CHECK-DAG: top.constant dense<{{.*}}> : tensor<3x3x5x5xbf16>
// CHECK: %[[A:.*]] = top.conv
// CHECK-NEXT: %[[P:.*]] = top.slice %[[A]]
// CHECK-NEXT: %[[D:.*]] = top.conv %[[P]], %[[V]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[D]] {to = bf16
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]] {to = f32}
// CHECK: top.conv %[[F]]

// f16 has the bits for them.
// F16: %[[V:.*]] = top.constant {{.*}} : tensor<3x1x3x3xf16>
// F16: %[[W:.*]] = top.cast %[[V]] {to = f32}
// F16-NEXT: top.conv %{{.*}}, %[[W]] {{.*}}groups = 3

func.func @main(%x: tensor<1x3x6x6xf32> {top.name = "x"}) -> (tensor<1x3x3x4xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<3x3x5x5xf32> : tensor<3x3x5x5xf32>
  %v = top.constant dense<0.3> : tensor<3x1x3x3xf32> : tensor<3x1x3x3xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x3x6x6xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x6x6xf32>
  %p = top.slice %a {starts = array<i64: 0, 0, 1, 0>, sizes = array<i64: 1, 3, 5, 6>, steps = array<i64: 1, 1, 1, 1>, top.outputs = ["p"]} : (tensor<1x3x6x6xf32>) -> tensor<1x3x5x6xf32>
  %d = top.conv %p, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 3 : i64, top.outputs = ["d"]} : (tensor<1x3x5x6xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x3x4xf32>
  %y = top.conv %d, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x3x3x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x3x4xf32>
  return %y : tensor<1x3x3x4xf32>
}
