// RUN: tessera-opt %s --top-quantize="calibration-table=%S/Inputs/levels.json quantize-table=%S/Inputs/levels_choices.json" | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// The 16-bit levels are limited so that no 32-bit sum overflows, whether of a window's elements or of products with
// bytes. (The left factor has 16 bits because of its other reader.) All parts of a concatenation have one range, which
// is asymmetric if that of one part is.
// CHECK: %[[S:.*]] = top.constant dense<0.0274509{{[0-9]*}}> : tensor<f32>
// CHECK: top.quantize %arg4, %[[S]],
// CHECK: %[[T:.*]] = top.constant dense<0.0274509{{[0-9]*}}> : tensor<f32>
// CHECK: top.quantize %arg3, %[[T]],
// CHECK: top.quantize %arg1, {{.*}}levels = 28071 : i64
// CHECK: top.quantize %arg0, {{.*}}levels = 23860 : i64
func.func @main(%p: tensor<1x1x300x300xf32> {top.name = "p"}, %a: tensor<2x300xf32> {top.name = "a"}, %b: tensor<300x2xf32> {top.name = "b"}, %c: tensor<1x2x4x4xf32> {top.name = "c"}, %d: tensor<1x2x4x4xf32> {top.name = "d"}) -> (tensor<1x1x1x1xf32> {top.name = "qq"}, tensor<2x2xf32> {top.name = "m"}, tensor<2x1xf32> {top.name = "nn"}, tensor<1x1x4x4xf32> {top.name = "z"}) {
  %q = top.avg_pool %p {kernel = array<i64: 300, 300>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["q"]} : (tensor<1x1x300x300xf32>) -> tensor<1x1x1x1xf32>
  %m = top.matmul %a, %b {top.outputs = ["m"]} : (tensor<2x300xf32>, tensor<300x2xf32>) -> tensor<2x2xf32>
  %n = top.reduce %a {kind = 1 : i32, axes = array<i64: 1>, keepDims = true, top.outputs = ["n"]} : (tensor<2x300xf32>) -> tensor<2x1xf32>
  %w1 = top.constant dense<1.0> : tensor<1x1xf32> : tensor<1x1xf32>
  %nn = top.matmul %n, %w1 {top.outputs = ["nn"]} : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %wq = top.constant dense<1.0> : tensor<1x1x1x1xf32> : tensor<1x1x1x1xf32>
  %qq = top.conv %q, %wq {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["qq"]} : (tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %wz = top.constant dense<1.0> : tensor<1x4x1x1xf32> : tensor<1x4x1x1xf32>
  %cat = top.concat %c, %d {axis = 1 : i64, top.outputs = ["cat"]} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>
  %z = top.conv %cat, %wz {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["z"]} : (tensor<1x4x4x4xf32>, tensor<1x4x1x1xf32>) -> tensor<1x1x4x4xf32>
  return %qq, %m, %nn, %z : tensor<1x1x1x1xf32>, tensor<2x2xf32>, tensor<2x1xf32>, tensor<1x1x4x4xf32>
}
