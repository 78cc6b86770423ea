// RUN: tessera-opt %s --top-pipeline --split-input-file --verify-each | FileCheck %s
// RUN: tessera-opt %s --split-input-file '--top-pipeline=recover=false fold-weights=false sink-transposes=false fuse=false' | FileCheck %s --check-prefix=OFF
// SPDX-License-Identifier: Apache-2.0

// A block of a TensorFlow exporter: pad, convolution and its normalisation in two layouts.
// CHECK-LABEL: @block
// CHECK-NOT: top.pad
// CHECK-NOT: top.transpose
// CHECK-NOT: top.batch_norm
// CHECK: %[[Y:.*]] = top.conv %arg0, %{{.*}}, %{{.*}} {dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 1, 1>, relu = true, reluLimit = 6.000000e+00 : f64, strides = array<i64: 2, 2>, top.outputs = ["y"]}
// CHECK-NEXT: return %[[Y]]
// OFF-LABEL: @block
// OFF: top.pad
// OFF: top.transpose
// OFF: top.clip
func.func @block(%x: tensor<1x1x8x8xf32>) -> tensor<1x2x4x4xf32> {
  %w = top.constant dense<1.0> : tensor<2x1x3x3xf32> : tensor<2x1x3x3xf32>
  %b = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %m = top.constant dense<[3.0, 4.0]> : tensor<2xf32> : tensor<2xf32>
  %0 = top.pad %x {pads = array<i64: 0, 0, 0, 0, 0, 0, 1, 1>, mode = 0 : i32} : (tensor<1x1x8x8xf32>) -> tensor<1x1x9x9xf32>
  %1 = top.conv %0, %w {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x9x9xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x4x4xf32>
  %2 = top.transpose %1 {perm = array<i64: 0, 2, 3, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x4x4x2xf32>
  %3 = top.mul %2, %m : (tensor<1x4x4x2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %4 = top.add %3, %b : (tensor<1x4x4x2xf32>, tensor<2xf32>) -> tensor<1x4x4x2xf32>
  %5 = top.clip %4 {lo = 0.0 : f64, hi = 6.0 : f64} : (tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32>
  %6 = top.transpose %5 {perm = array<i64: 0, 3, 1, 2>, top.outputs = ["y"]} : (tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32>
  return %6 : tensor<1x2x4x4xf32>
}
