// RUN: tessera-opt %s --assign-precision=precision=F32 | FileCheck %s --check-prefixes=CHECK,F32
// RUN: tessera-opt %s --assign-precision=precision=INT8 | FileCheck %s --check-prefixes=CHECK,INT8
// SPDX-License-Identifier: Apache-2.0

// A model with quantize and dequantize ops states by itself that its convolution multiplies integers, also after ops
// that only move them.
// F32: top.max_pool {{.*}}top.precision = "F32"
// F32: top.conv {{.*}}top.precision = "INT8", top.precision_reason = "the model quantises its operands"
// INT8: top.conv {{.*}}top.precision = "INT8", top.precision_reason = "the model already quantises its weight"
// CHECK: top.conv {{.*}}top.precision = "F32"
// CHECK-NOT: top.dequantize{{.*}}top.precision
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x2x2xf32> {top.name = "y"}) {
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %wi = top.constant dense<3> : tensor<2x2x1x1xi8> : tensor<2x2x1x1xi8>
  %w = top.dequantize %wi, %s, %z : (tensor<2x2x1x1xi8>, tensor<f32>, tensor<i8>) -> tensor<2x2x1x1xf32>
  %q = top.quantize %x, %s, %z : (tensor<1x2x4x4xf32>, tensor<f32>, tensor<i8>) -> tensor<1x2x4x4xi8>
  %d = top.dequantize %q, %s, %z : (tensor<1x2x4x4xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2x4x4xf32>
  %p = top.max_pool %d {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %c = top.conv %p, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x2x2xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x2x2xf32>
  %y = top.conv %c, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x2x2xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x2x2xf32>
  return %y : tensor<1x2x2x2xf32>
}
