// RUN: tessera-opt %s --top-isolate | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Tensors of integers and of bf16 are returned as f32, and their readers get the argument rounded in the same way. A
// reader of the unrounded value gets the unrounded argument. Inputs, and integers that are not quantised tensors, stay.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {top.name = "x"}, %[[I:.*]]: tensor<1xi64> {top.name = "i"},
// CHECK-SAME: %[[A:.*]]: tensor<4xf32> {top.name = "a"}, %[[B:.*]]: tensor<4xf32> {top.name = "b"}, %[[C:.*]]: tensor<4xf32> {top.name = "c"},
// CHECK-SAME: -> (tensor<4xf32> {top.name = "a"}, tensor<4xf32> {top.name = "b"}, tensor<4xf32> {top.name = "c"}, tensor<4xf32> {top.name = "d"}
// CHECK: %[[RELU:.*]] = top.relu %[[X]]
// CHECK: %[[OWNQ:.*]] = top.quantize %[[RELU]]
// CHECK: %[[OWNA:.*]] = top.dequantize %[[OWNQ]]
// CHECK: %[[QA:.*]] = top.quantize %[[A]]
// CHECK: %[[DA:.*]] = top.dequantize %[[QA]]
// CHECK: %[[OWNB:.*]] = top.add %[[DA]], %[[A]]
// CHECK: %[[TANH:.*]] = top.tanh %[[B]]
// CHECK: %[[OWNH:.*]] = top.cast %[[TANH]]
// CHECK: %[[OWNC:.*]] = top.cast %[[OWNH]]
// CHECK: %[[H:.*]] = top.cast %[[C]]
// CHECK: %[[HC:.*]] = top.cast %[[H]]
// CHECK: %[[OWND:.*]] = top.neg %[[HC]]
// CHECK: return %[[OWNA]], %[[OWNB]], %[[OWNC]], %[[OWND]]
func.func @main(%x: tensor<4xf32> {top.name = "x"}, %i: tensor<1xi64> {top.name = "i"})
    -> (tensor<4xf32> {top.name = "y"}, tensor<1xi64> {top.name = "j"}) {
  %s = top.constant dense<5.0e-01> : tensor<f32> : tensor<f32>
  %z = top.constant dense<3> : tensor<i8> : tensor<i8>
  %r = top.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %q = top.quantize %r, %s, %z {top.outputs = ["a"]} : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  %a = top.dequantize %q, %s, %z : (tensor<4xi8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  %b = top.add %a, %r {top.outputs = ["b"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = top.tanh %b : (tensor<4xf32>) -> tensor<4xf32>
  %h = top.cast %t {to = bf16, top.outputs = ["c"]} : (tensor<4xf32>) -> tensor<4xbf16>
  %c = top.cast %h {to = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  %d = top.neg %c {top.outputs = ["d"]} : (tensor<4xf32>) -> tensor<4xf32>
  %j = top.neg %i {top.outputs = ["j"]} : (tensor<1xi64>) -> tensor<1xi64>
  return %d, %j : tensor<4xf32>, tensor<1xi64>
}
