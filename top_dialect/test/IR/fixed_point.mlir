// RUN: tessera-opt %s | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// CHECK-LABEL: @per_tensor
// CHECK: top.requantize {{.*}} -> tensor<2x?xui8>
func.func @per_tensor(%x: tensor<2x?xi32>, %m: tensor<i32>, %s: tensor<i32>) {
  %q = top.requantize %x, %m, %s {zero = 3 : i64, low = 0 : i64, high = 255 : i64, to = ui8} : (tensor<2x?xi32>, tensor<i32>, tensor<i32>) -> tensor<2x?xui8>
  return
}

// CHECK-LABEL: @per_channel
// CHECK: top.requantize {{.*}} -> tensor<1x3x4x4xi16>
func.func @per_channel(%x: tensor<1x3x4x4xi64>, %m: tensor<3x1x1xi32>, %s: tensor<i32>) {
  %q = top.requantize %x, %m, %s {zero = 0 : i64, low = -32768 : i64, high = 32767 : i64, to = i16} : (tensor<1x3x4x4xi64>, tensor<3x1x1xi32>, tensor<i32>) -> tensor<1x3x4x4xi16>
  return
}
