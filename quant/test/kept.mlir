// RUN: tessera-opt %s --top-quantize="calibration-table=%S/Inputs/table.json quantize-table=%S/Inputs/choices.json" --verify-diagnostics | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// A convolution that the quantise table excludes reads float values, as does one whose input is not in the table. The
// remarks below state this.
// CHECK: %[[B:.*]] = top.conv
// CHECK: %[[C:.*]] = top.conv %[[B]]
// CHECK-NEXT: %[[T:.*]] = top.tanh %[[C]]
// CHECK-NEXT: %[[N:.*]] = top.conv %[[T]]
// CHECK-NEXT: %[[M:.*]] = top.matmul %[[N]], %[[N]]
// CHECK-NEXT: %[[S:.*]] = top.softmax %[[M]]
// CHECK-NEXT: return %[[S]]
// expected-remark @below {{'c' (top.conv) stays float: the quantise table says F32: SQNR 9 dB}}
// expected-remark @below {{'t' (top.tanh) stays float: tensor 't' has no line in the calibration table}}
// expected-remark @below {{'n' (top.conv) stays float: tensor 't' has no line in the calibration table}}
// expected-remark @below {{'y' (top.matmul) stays float: neither of its operands is a constant}}
// expected-remark @below {{'softmax' (top.softmax) stays float: top.softmax has no integer form}}
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}) -> (tensor<1x2x4x4xf32> {top.name = "s"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %c = top.conv %b, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %t = top.tanh %c {top.outputs = ["t"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %n = top.conv %t, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["n"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %m = top.matmul %n, %n {top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %s = top.softmax %m {axis = 1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %s : tensor<1x2x4x4xf32>
}
