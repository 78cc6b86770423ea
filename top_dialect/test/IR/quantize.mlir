// RUN: tessera-opt %s | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// CHECK-LABEL: @per_tensor
// CHECK: top.quantize {{.*}} -> tensor<2x?xui8>
// CHECK: top.dequantize {{.*}} -> tensor<2x?xf32>
func.func @per_tensor(%x: tensor<2x?xf32>, %s: tensor<f32>, %z: tensor<ui8>) {
  %q = top.quantize %x, %s, %z : (tensor<2x?xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x?xui8>
  %y = top.dequantize %q, %s, %z : (tensor<2x?xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @per_channel
// CHECK: top.quantize {{.*}} -> tensor<4x3x1x1xi8>
func.func @per_channel(%x: tensor<4x3x1x1xf32>, %s: tensor<4x1x1x1xf32>, %z: tensor<i8>) {
  %q = top.quantize %x, %s, %z : (tensor<4x3x1x1xf32>, tensor<4x1x1x1xf32>, tensor<i8>) -> tensor<4x3x1x1xi8>
  return
}

// CHECK-LABEL: @bias
// CHECK: top.dequantize {{.*}} -> tensor<4xf32>
func.func @bias(%x: tensor<4xi32>, %s: tensor<4xf32>, %z: tensor<i32>) {
  %y = top.dequantize %x, %s, %z : (tensor<4xi32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return
}
