// RUN: tessera-opt %s --top-fold-pad --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// CHECK-LABEL: @conv
// CHECK-NOT: top.pad
// CHECK: top.conv %arg0, {{.*}}pads = array<i64: 2, 0, 1, 3>
func.func @conv(%x: tensor<1x1x8x8xf32>) -> tensor<1x1x9x9xf32> {
  %w = top.constant dense<1.0> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %0 = top.pad %x {pads = array<i64: 0, 0, 1, 0, 0, 0, 0, 2>, mode = 0 : i32} : (tensor<1x1x8x8xf32>) -> tensor<1x1x9x10xf32>
  %1 = top.conv %0, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x1x9x10xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x9x9xf32>
  return %1 : tensor<1x1x9x9xf32>
}

// -----

// Padding of channels, with another value, or by reflection cannot become padding of a convolution.
// CHECK-LABEL: @keeps
// CHECK: top.pad
// CHECK: top.pad
// CHECK: top.pad
func.func @keeps(%x: tensor<1x1x8xf32>) -> (tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>) {
  %w2 = top.constant dense<1.0> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  %w = top.constant dense<1.0> : tensor<1x1x3xf32> : tensor<1x1x3xf32>
  %0 = top.pad %x {pads = array<i64: 0, 1, 0, 0, 0, 0>, mode = 0 : i32} : (tensor<1x1x8xf32>) -> tensor<1x2x8xf32>
  %1 = top.conv %0, %w2 {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x8xf32>, tensor<1x2x1xf32>) -> tensor<1x1x8xf32>
  %2 = top.pad %x {pads = array<i64: 0, 0, 1, 0, 0, 1>, mode = 0 : i32, value = 1.0 : f64} : (tensor<1x1x8xf32>) -> tensor<1x1x10xf32>
  %3 = top.conv %2, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x10xf32>, tensor<1x1x3xf32>) -> tensor<1x1x8xf32>
  %4 = top.pad %x {pads = array<i64: 0, 0, 1, 0, 0, 1>, mode = 1 : i32} : (tensor<1x1x8xf32>) -> tensor<1x1x10xf32>
  %5 = top.conv %4, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x10xf32>, tensor<1x1x3xf32>) -> tensor<1x1x8xf32>
  return %1, %3, %5 : tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
}

// -----

// The mean counts the padding before and after the folding.
// CHECK-LABEL: @avg_pool
// CHECK-NOT: top.pad
// CHECK: top.avg_pool %arg0 {countIncludePad = true, {{.*}}pads = array<i64: 1, 1>
func.func @avg_pool(%x: tensor<1x1x8xf32>) -> tensor<1x1x8xf32> {
  %0 = top.pad %x {pads = array<i64: 0, 0, 1, 0, 0, 1>, mode = 0 : i32} : (tensor<1x1x8xf32>) -> tensor<1x1x10xf32>
  %1 = top.avg_pool %0 {kernel = array<i64: 3>, strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x10xf32>) -> tensor<1x1x8xf32>
  return %1 : tensor<1x1x8xf32>
}

// -----

// The pool's own padding does not count towards the mean, but the pad's does: one pool cannot express both.
// CHECK-LABEL: @avg_pool_keeps
// CHECK: top.pad
func.func @avg_pool_keeps(%x: tensor<1x1x8xf32>) -> tensor<1x1x9xf32> {
  %0 = top.pad %x {pads = array<i64: 0, 0, 1, 0, 0, 1>, mode = 0 : i32} : (tensor<1x1x8xf32>) -> tensor<1x1x10xf32>
  %1 = top.avg_pool %0 {kernel = array<i64: 3>, strides = array<i64: 1>, pads = array<i64: 1, 0>, dilations = array<i64: 1>} : (tensor<1x1x10xf32>) -> tensor<1x1x9xf32>
  return %1 : tensor<1x1x9xf32>
}

// -----

// A padded zero can be the maximum of negative elements, but not after a relu; -inf is never the maximum.
// CHECK-LABEL: @max_pool
// CHECK: top.pad %arg0
// CHECK-NOT: top.pad
// CHECK: return
func.func @max_pool(%x: tensor<1x1x8xf32>) -> (tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>) {
  %0 = top.pad %x {pads = array<i64: 0, 0, 1, 0, 0, 1>, mode = 0 : i32} : (tensor<1x1x8xf32>) -> tensor<1x1x10xf32>
  %1 = top.max_pool %0 {kernel = array<i64: 3>, strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x10xf32>) -> tensor<1x1x8xf32>
  %2 = top.relu %x : (tensor<1x1x8xf32>) -> tensor<1x1x8xf32>
  %3 = top.pad %2 {pads = array<i64: 0, 0, 1, 0, 0, 1>, mode = 0 : i32} : (tensor<1x1x8xf32>) -> tensor<1x1x10xf32>
  %4 = top.max_pool %3 {kernel = array<i64: 3>, strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x10xf32>) -> tensor<1x1x8xf32>
  %5 = top.pad %x {pads = array<i64: 0, 0, 1, 0, 0, 1>, mode = 0 : i32, value = 0xFFF0000000000000 : f64} : (tensor<1x1x8xf32>) -> tensor<1x1x10xf32>
  %6 = top.max_pool %5 {kernel = array<i64: 3>, strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x10xf32>) -> tensor<1x1x8xf32>
  return %1, %4, %6 : tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>
}
