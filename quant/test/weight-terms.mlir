// weight_terms 2 adds a second contraction of the same input for the rounding error, in the epilogue of the first.
// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: tessera-opt %t/conv.mlir --top-quantize=calibration-table=%S/Inputs/weight_terms.json | FileCheck %s
// RUN: not tessera-opt %t/other.mlir --top-quantize=calibration-table=%S/Inputs/weight_terms.json 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: '{{.*}}weight_terms.json': tensor '{{[yz]}}': "weight_terms" is 2, but no convolution or matmul produces it
// RUN: sed 's/"weight_terms": 2/"weight_terms": 3/' %S/Inputs/weight_terms.json > %t/three.json
// RUN: not tessera-opt %t/conv.mlir --top-quantize=calibration-table=%t/three.json 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: tensor 'y': "weight_terms" is 3, expected a whole number from 1 to 2

// y: weights 1.27 and 0.635 in steps of 0.01 leave an error of 0.005, half a step. Its integers are -127, and its i16
// range is 128 * 0.005. The first contraction keeps the bias. The rectifier follows the sum, which takes over the name.
// CHECK-LABEL: func.func @main
// CHECK: %[[XD:.*]] = top.dequantize
// CHECK: %[[R:.*]] = top.conv %[[XD]], %{{[^,]*}} {
// CHECK-NOT: relu = true
// CHECK: top.constant dense<1.953{{[0-9]*}}E-5> : tensor<f32>
// CHECK: %[[RQ:.*]] = top.quantize %[[R]], %{{.*}} {levels = 32767 : i64} : {{.*}} -> tensor<1x1x4x4xi16>
// CHECK: %[[RD:.*]] = top.dequantize %[[RQ]]
// CHECK: %[[Y:.*]] = top.conv %[[XD]], %{{.*}}, %{{.*}} {
// CHECK-NOT: relu = true
// CHECK: %[[S:.*]] = top.add %[[Y]], %[[RD]]
// CHECK: top.clip %[[S]] {hi = 6.000000e+00 : f64, lo = 0.000000e+00 : f64

// z: the weights are integral, so there is no error.
// CHECK: top.conv
// CHECK-NOT: top.conv
// CHECK: return

//--- conv.mlir
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x1x4x4xf32> {top.name = "y"}, tensor<1x1x4x4xf32> {top.name = "z"}) {
  %w = top.constant dense<[[[[1.27]], [[0.635]]]]> : tensor<1x2x1x1xf32> : tensor<1x2x1x1xf32>
  %v = top.constant dense<[[[[127.0]], [[-64.0]]]]> : tensor<1x2x1x1xf32> : tensor<1x2x1x1xf32>
  %b = top.constant dense<0.5> : tensor<1xf32> : tensor<1xf32>
  %y = top.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, relu = true, reluLimit = 6.0, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>, tensor<1xf32>) -> tensor<1x1x4x4xf32>
  %z = top.conv %x, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["z"]} : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32>
  return %y, %z : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>
}
//--- other.mlir
func.func @main(%x: tensor<4xf32> {top.name = "x"}) -> (tensor<4xf32> {top.name = "y"}, tensor<4xf32> {top.name = "z"}) {
  %y = top.relu %x {top.outputs = ["y"]} : (tensor<4xf32>) -> tensor<4xf32>
  %z = top.relu %y {top.outputs = ["z"]} : (tensor<4xf32>) -> tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}
