// RUN: tessera-opt %s --top-quantize=precision=BF16 --split-input-file | FileCheck %s
// RUN: not tessera-opt %s --top-quantize=precision=BF17 --split-input-file 2>&1 | FileCheck %s --check-prefix=BAD
// SPDX-License-Identifier: Apache-2.0

// BAD: precision 'BF17'; allowed: F32, INT8, INT16, BF16, F16, W8, W4, W8A8, W4A8, DYNAMIC_INT8

// Weights are bf16 constants. Values stored between two ops are rounded, as is an input that only convolutions read;
// the network's output is not.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor<1x3x4x4xf32>
// CHECK-DAG: %[[W:.*]] = top.constant dense<-6.367190e-01> : tensor<3x3x5x5xbf16>
// CHECK-DAG: %[[WF:.*]] = top.cast %[[W]] {to = f32}
// CHECK-DAG: %[[RX:.*]] = top.cast %[[X]] {to = bf16}
// CHECK-DAG: %[[FX:.*]] = top.cast %[[RX]] {to = f32}
// CHECK: %[[A:.*]] = top.conv %[[FX]], %[[WF]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[A]] {to = bf16, top.outputs = ["a"]}
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]] {to = f32}
// CHECK: %[[Y:.*]] = top.conv %[[F]], %{{.*}}
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x3x4x4xf32> {top.name = "x"}) -> (tensor<1x3x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<3x3x5x5xf32> : tensor<3x3x5x5xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  %y = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  return %y : tensor<1x3x4x4xf32>
}

// -----

// An input with another reader is not rounded.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor<1x3x4x4xf32>
// CHECK: top.conv %[[X]]
func.func @main(%x: tensor<1x3x4x4xf32> {top.name = "x"}) -> (tensor<1x3x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<3x3x5x5xf32> : tensor<3x3x5x5xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  %y = top.add %a, %x {top.outputs = ["y"]} : (tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  return %y : tensor<1x3x4x4xf32>
}

// -----

// A value that only an elementwise op reads is fused and not stored. softmax reads f32, also through moves.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = top.conv
// CHECK-NEXT: %[[S:.*]] = top.sigmoid %[[A]]
// CHECK-NEXT: %[[R:.*]] = top.cast %[[S]] {to = bf16
// CHECK-NEXT: %[[F:.*]] = top.cast %[[R]] {to = f32}
// CHECK: %[[B:.*]] = top.conv %[[F]]
// CHECK-NEXT: %[[M:.*]] = top.reshape %[[B]]
// CHECK-NEXT: top.softmax %[[M]]
func.func @main(%x: tensor<1x3x4x4xf32> {top.name = "x"}) -> (tensor<1x48xf32> {top.name = "y"}) {
  %w = top.constant dense<-0.637> : tensor<3x3x5x5xf32> : tensor<3x3x5x5xf32>
  %a = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  %s = top.sigmoid %a {top.outputs = ["s"]} : (tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %b = top.conv %s, %w {strides = array<i64: 1, 1>, pads = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x3x4x4xf32>, tensor<3x3x5x5xf32>) -> tensor<1x3x4x4xf32>
  %m = top.reshape %b {shape = array<i64: 1, 48>, top.outputs = ["m"]} : (tensor<1x3x4x4xf32>) -> tensor<1x48xf32>
  %y = top.softmax %m {axis = 1 : i64, top.outputs = ["y"]} : (tensor<1x48xf32>) -> tensor<1x48xf32>
  return %y : tensor<1x48xf32>
}
