// RUN: tessera-opt %s --top-quantize=precision=BF16 --split-input-file | FileCheck %s
// RUN: not tessera-opt %s --top-quantize=precision=BF17 --split-input-file 2>&1 | FileCheck %s --check-prefix=BAD
// SPDX-License-Identifier: Apache-2.0

// BAD: precision 'BF17'; allowed: F32, INT8, INT16, BF16, F16, W8, W4

// Weights are bf16 constants; what is stored between two steps is rounded, the network's input and output are not.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor<1x2x4x4xf32>
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{.*}}1.000000e+00{{.*}}-6.367190e-01{{.*}}> : tensor<2x2x1x1xbf16>
// CHECK: %[[WF:.*]] = top.cast %[[W]] {to = f32}
// CHECK: %[[A:.*]] = top.conv %[[X]], %[[WF]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[A]] {to = bf16, top.outputs = ["a"]}
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]] {to = f32}
// CHECK: %[[Y:.*]] = top.conv %[[F]], %{{.*}}
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.0]], [[-0.637]]], [[[25.5]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %y = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// What an elementwise op alone reads stays in the step that makes it; softmax reads f32.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = top.matmul
// CHECK-NEXT: %[[S:.*]] = top.sigmoid %[[A]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[S]] {to = bf16
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]] {to = f32}
// CHECK: %[[B:.*]] = top.matmul %[[F]]
// CHECK-NEXT: top.softmax %[[B]]
func.func @main(%x: tensor<3x2xf32> {top.name = "x"}) -> (tensor<3x2xf32> {top.name = "y"}) {
  %w = top.constant dense<[[1.0, -0.637], [25.5, 0.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %a = top.matmul %x, %w {top.outputs = ["a"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %s = top.sigmoid %a {top.outputs = ["s"]} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %b = top.matmul %s, %w {top.outputs = ["b"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %y = top.softmax %b {axis = 1 : i64, top.outputs = ["y"]} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
