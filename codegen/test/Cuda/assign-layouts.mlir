// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --cuda-assign-layouts --split-input-file | FileCheck %s

// Convolutions of bytes write channel blocks of 32; the first one reads its few channels from the row-major input.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: device.copy
// CHECK: device.conv %arg0, {{.*}} epilogue
// CHECK: -> tensor<1x64x8x8xi8, #device.blocked<32>>
// CHECK: device.conv {{.*}} epilogue
// CHECK: groups = 64 {{.*}} -> tensor<1x64x8x8xi8, #device.blocked<32>>
// CHECK-COUNT-1: device.copy
// CHECK-NOT: device.copy
func.func @chain(%x: tensor<1x3x8x8xi8>) -> tensor<1x64x8x8xi8> {
  %w = top.constant dense<1> : tensor<64x3x1x1xi8> : tensor<64x3x1x1xi8>
  %d = top.constant dense<1> : tensor<64x1x3x3xi8> : tensor<64x1x3x3xi8>
  %c = device.conv %x, %w epilogue {
  ^bb0(%a: i32):
    %s = arith.trunci %a : i32 to i8
    device.yield %s : i8
  } {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xi8>, tensor<64x3x1x1xi8>) -> tensor<1x64x8x8xi8>
  %y = device.conv %c, %d epilogue {
  ^bb0(%a: i32):
    %s = arith.trunci %a : i32 to i8
    device.yield %s : i8
  } {groups = 64 : i64, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x64x8x8xi8>, tensor<64x1x3x3xi8>) -> tensor<1x64x8x8xi8>
  return %y : tensor<1x64x8x8xi8>
}

// -----

// Groups of three f16 are not whole words, so tiles do not support them: the tensors stay row-major.
// CHECK-LABEL: func.func @grouped
// CHECK-NOT: blocked
func.func @grouped(%x: tensor<1x12x8x8xf16>) -> tensor<1x16x8x8xf32> {
  %w = top.constant dense<0.5> : tensor<16x3x1x1xf16> : tensor<16x3x1x1xf16>
  %c = device.conv %x, %w {groups = 4 : i64, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x12x8x8xf16>, tensor<16x3x1x1xf16>) -> tensor<1x16x8x8xf32>
  return %c : tensor<1x16x8x8xf32>
}
