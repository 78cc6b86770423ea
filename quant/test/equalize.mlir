// The calibration table's weight file contains factors. Tensors are divided by them where they are computed, and their
// readers compensate.
// SPDX-License-Identifier: Apache-2.0
// RUN: %python %S/Inputs/learned.py %S/Inputs/table.json %t
// RUN: tessera-opt %s --top-quantize=calibration-table=%t/factors.json | FileCheck %s
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/factors_count.json 2>&1 | FileCheck %s --check-prefix=FIT
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/factors_zero.json 2>&1 | FileCheck %s --check-prefix=FIT
// FIT: error: the factors of tensor 'a' do not match the model: run run_calibration again
// Tensors that are added must have equal factors.
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/factors_apart.json 2>&1 | FileCheck %s --check-prefix=APART
// APART: error: the factors of tensor 'e' do not match the model
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/factors_rank.json 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: error: '{{.*}}.safetensors': the factors of tensor 'a' are not a vector of f32

// CHECK-LABEL: func.func @main
// A convolution divides its weights and bias per output channel. Rectifier, pool and constant term propagate factors.
// CHECK-DAG: %[[A:.*]] = top.constant dense<{{\[\[\[\[}}2.000000e+00]]], [{{\[\[}}4.000000e+00]]]]> : tensor<2x1x1x1xf32>
// CHECK-DAG: %[[BIAS:.*]] = top.constant dense<[2.000000e+00, 8.000000e+00]> : tensor<2xf32>
// CHECK: top.conv %{{.*}}, %[[A]], %[[BIAS]]
// CHECK: top.relu
// CHECK: top.max_pool
// CHECK: %[[TERM:.*]] = top.constant dense<{{\[\[\[\[}}6.000000e+00]], {{\[\[}}1.200000e+01]]]]> : tensor<1x2x1x1xf32>
// CHECK: top.add %{{.*}}, %[[TERM]]
// A function that does not commute with factors is followed by a multiplication, which takes over the tensor's name.
// CHECK: top.silu %{{[^ ]*}} :
// CHECK: top.mul %{{.*}} {top.outputs = ["s"]}
// CHECK: top.concat
// The weights of the next convolution are multiplied per input channel.
// CHECK: %[[Y:.*]] = top.constant dense<{{\[\[\[\[}}5.000000e-01]], {{\[\[}}2.500000e-01]], {{\[\[}}1.250000e-01]]]]> : tensor<1x3x1x1xf32>
// CHECK: top.conv %{{.*}}, %[[Y]]
// A norm divides its scale and bias.
// CHECK: %[[SCALE:.*]] = top.constant dense<5.000000e-01> : tensor<2xf32>
// CHECK: top.layer_norm %{{.*}} scale %[[SCALE]]
// CHECK: %[[M:.*]] = top.constant dense<{{\[\[}}2.000000e+00], [4.000000e+00]]> : tensor<2x1xf32>
// CHECK: top.matmul %{{.*}}, %[[M]]
func.func @main(%x: tensor<1x1x4x4xf32> {top.name = "x"}, %t: tensor<1x3x2xf32> {top.name = "t"}) -> (tensor<1x1x4x4xf32> {top.name = "y"}, tensor<1x3x1xf32> {top.name = "m"}) {
  %w = top.constant dense<1.0> : tensor<2x1x1x1xf32> : tensor<2x1x1x1xf32>
  %one = top.constant dense<1.0> : tensor<1x1x1x1xf32> : tensor<1x1x1x1xf32>
  %bias = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %three = top.constant dense<3.0> : tensor<1x1x1x1xf32> : tensor<1x1x1x1xf32>
  %a = top.conv %x, %w, %bias {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %r = top.relu %a {top.outputs = ["r"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %p = top.max_pool %r {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["p"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %c = top.add %p, %three {top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %e = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["e"]} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %f = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["f"]} : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %g = top.add %e, %f {top.outputs = ["g"]} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %h = top.reduce %g {kind = 0 : i32, axes = array<i64: 1>, top.outputs = ["h"]} : (tensor<1x2x4x4xf32>) -> tensor<1x1x4x4xf32>
  %b = top.conv %h, %one {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x4x4xf32>
  %s = top.silu %b {top.outputs = ["s"]} : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %j = top.concat %c, %s {axis = 1 : i64, top.outputs = ["j"]} : (tensor<1x2x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x3x4x4xf32>
  %wy = top.constant dense<1.0> : tensor<1x3x1x1xf32> : tensor<1x3x1x1xf32>
  %y = top.conv %j, %wy {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x1x4x4xf32>
  %scale = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %n = top.layer_norm %t scale %scale {axis = 2 : i64, epsilon = 1.0e-05 : f64, top.outputs = ["n"]} : (tensor<1x3x2xf32>, tensor<2xf32>) -> tensor<1x3x2xf32>
  %wm = top.constant dense<1.0> : tensor<2x1xf32> : tensor<2x1xf32>
  %m = top.matmul %n, %wm {top.outputs = ["m"]} : (tensor<1x3x2xf32>, tensor<2x1xf32>) -> tensor<1x3x1xf32>
  return %y, %m : tensor<1x1x4x4xf32>, tensor<1x3x1xf32>
}
