// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --convert-top-to-device --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @relu
// CHECK: %[[Y:.*]] = device.map(%arg0) {
// CHECK: arith.maximumf
// CHECK: } {top.outputs = ["act"]} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("Relu_7")
func.func @relu(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = top.relu %x {top.outputs = ["act"]} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("Relu_7")
  return %y : tensor<2x3xf32>
}

// A one-element constant becomes a constant of the body.
// CHECK-LABEL: func.func @scale
// CHECK: device.map(%arg0) {
// CHECK-NEXT: ^bb0(%{{[^,]*}}: f32
// CHECK-NEXT: arith.constant 2.550000e+02 : f32
func.func @scale(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = top.constant dense<255.0> : tensor<1xf32> : tensor<1xf32>
  %y = top.div %x, %c : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// A 1-D convolution becomes a 2-D one over rows of height 1; its relu6 becomes the epilogue.
// CHECK-LABEL: func.func @conv_1d
// CHECK: %[[X:.*]] = device.reshape %arg0 : (tensor<1x2x8xf32>) -> tensor<1x2x1x8xf32>
// CHECK: %[[C:.*]] = device.conv %[[X]], %{{.*}} epilogue
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK: pads = array<i64: 0, 1, 0, 1>, strides = array<i64: 1, 2>
// CHECK: device.reshape %[[C]]
func.func @conv_1d(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) -> tensor<1x4x4xf32> {
  %y = top.conv %x, %w {strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>, relu = true, reluLimit = 6.0 : f64} : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x4xf32>
  return %y : tensor<1x4x4xf32>
}

// Outer taps that only meet padding are dropped, with their padding: here only the middle row remains.
// CHECK-LABEL: func.func @unseen_taps
// CHECK: %[[W:.*]] = top.constant dense<{{\[\[\[\[}}4.000000e+00, 5.000000e+00, 6.000000e+00]]]]> : tensor<1x1x1x3xf32>
// CHECK: device.conv %arg0, %[[W]] {dilations = array<i64: 1, 4>, pads = array<i64: 0, 4, 0, 4>, strides = array<i64: 1, 1>}
func.func @unseen_taps(%x: tensor<1x1x6x6xf32>) -> tensor<1x1x6x6xf32> {
  %w = top.constant dense<[[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]]> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %z = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 6, 4, 6, 4>, dilations = array<i64: 6, 4>} : (tensor<1x1x6x6xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x6x6xf32>
  return %z : tensor<1x1x6x6xf32>
}

// Kernel = stride: a 1x1 convolution and a permutation.
// CHECK-LABEL: func.func @conv_transpose_tiles
// CHECK: device.conv
// CHECK-SAME: -> tensor<1x12x5x5xf32>
// CHECK: device.copy
// CHECK: device.reshape %{{.*}} -> tensor<1x3x10x10xf32>
func.func @conv_transpose_tiles(%x: tensor<1x2x5x5xf32>, %w: tensor<2x3x2x2xf32>) -> tensor<1x3x10x10xf32> {
  %y = top.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, outputPadding = array<i64: 0, 0>} : (tensor<1x2x5x5xf32>, tensor<2x3x2x2xf32>) -> tensor<1x3x10x10xf32>
  return %y : tensor<1x3x10x10xf32>
}

// If the kernel exceeds the stride, results a stride apart see the same taps: 2 x 2 of 3 x 3 here. They are channels of
// one convolution, four for each channel of the result.
// CHECK-LABEL: func.func @conv_transpose_phases
// CHECK: device.conv %arg0
// CHECK-SAME: pads = array<i64: 1, 1, 1, 1>
// CHECK-SAME: -> tensor<1x12x6x6xf32>
// CHECK: device.copy
// CHECK-SAME: dst_steps = [1, 1, 2, 2], {{.*}}src_offsets = [0, 9, 0, 0]
// CHECK-SAME: dst_offsets = [0, 0, 0, 1], dst_steps = [1, 1, 2, 2], {{.*}}src_offsets = [0, 6, 0, 1]
// CHECK-SAME: -> tensor<1x3x10x10xf32>
func.func @conv_transpose_phases(%x: tensor<1x2x5x5xf32>) -> tensor<1x3x10x10xf32> {
  %w = top.constant dense<1.0> : tensor<2x3x3x3xf32> : tensor<2x3x3x3xf32>
  %y = top.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, outputPadding = array<i64: 1, 1>} : (tensor<1x2x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x3x10x10xf32>
  return %y : tensor<1x3x10x10xf32>
}

// Phases along one dim with equally many taps are transposed: those of a channel are the rows of a matrix. A pad that
// is not a multiple of the stride splits them in two.
// CHECK-LABEL: func.func @conv_transpose_turned
// CHECK: device.conv
// CHECK-SAME: -> tensor<1x60x1x6xf32>
// CHECK: device.reshape %{{.*}} -> tensor<1x3x20x6xf32>
// CHECK: device.copy
// CHECK-SAME: sizes = [1, 3, 5, 13], {{.*}}src_dims = [0, 1, 3, 2], src_offsets = [0, 0, 7, 0]
// CHECK-SAME: sizes = [1, 3, 5, 7], dst_offsets = [0, 0, 0, 13], {{.*}}src_offsets = [0, 0, 0, 1]
// CHECK-SAME: -> tensor<1x3x5x20xf32>
// CHECK: device.reshape %{{.*}} -> tensor<1x3x100xf32>
// CHECK: -> tensor<1x3x86xf32>
func.func @conv_transpose_turned(%x: tensor<1x2x5xf32>) -> tensor<1x3x86xf32> {
  %w = top.constant dense<1.0> : tensor<2x3x20xf32> : tensor<2x3x20xf32>
  %y = top.conv_transpose %x, %w {strides = array<i64: 20>, pads = array<i64: 7, 7>, dilations = array<i64: 1>, outputPadding = array<i64: 0>} : (tensor<1x2x5xf32>, tensor<2x3x20xf32>) -> tensor<1x3x86xf32>
  return %y : tensor<1x3x86xf32>
}

// Likewise for more phases than a copy may have pieces: 10 x 10, of one or two taps each.
// CHECK-LABEL: func.func @conv_transpose_many_phases
// CHECK: device.conv %arg0
// CHECK-SAME: -> tensor<1x100x3x3xf32>
// CHECK: device.reshape %{{.*}} -> tensor<1x1x10x10x3x3xf32>
// CHECK: -> tensor<1x1x3x10x3x10xf32>
// CHECK: -> tensor<1x1x22x22xf32>
func.func @conv_transpose_many_phases(%x: tensor<1x1x2x2xf32>) -> tensor<1x1x22x22xf32> {
  %w = top.constant dense<1.0> : tensor<1x1x12x12xf32> : tensor<1x1x12x12xf32>
  %y = top.conv_transpose %x, %w {strides = array<i64: 10, 10>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, outputPadding = array<i64: 0, 0>} : (tensor<1x1x2x2xf32>, tensor<1x1x12x12xf32>) -> tensor<1x1x22x22xf32>
  return %y : tensor<1x1x22x22xf32>
}

// If a kernel is dilated, x is spread by the strides and convolved with the flipped kernel.
// CHECK-LABEL: func.func @conv_transpose_spread
// CHECK-DAG: device.copy %arg0 {fill = 0.000000e+00 : f64{{.*}}dst_steps = [1, 1, 2, 2]
// CHECK-DAG: device.copy %{{.*}}src_dims = [0, 2, 1, 3, 4]{{.*}}src_steps = [1, 1, 1, -1, -1]
// CHECK: device.conv
// CHECK-SAME: dilations = array<i64: 2, 2>
// CHECK-SAME: pads = array<i64: 3, 3, 3, 3>
func.func @conv_transpose_spread(%x: tensor<1x2x5x5xf32>, %w: tensor<2x3x3x3xf32>) -> tensor<1x3x11x11xf32> {
  %y = top.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 2, 2>, outputPadding = array<i64: 0, 0>} : (tensor<1x2x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x3x11x11xf32>
  return %y : tensor<1x3x11x11xf32>
}

// A mean is a sum and a division; dropping dims is a reshape.
// CHECK-LABEL: func.func @mean
// CHECK: device.reduce sum %arg0 epilogue
// CHECK: arith.constant 1.200000e+01 : f32
// CHECK: arith.divf
// CHECK: axes = array<i64: 1, 2>{{.*}} -> tensor<2x1x1xf32>
// CHECK: device.reshape %{{.*}} -> tensor<2xf32>
func.func @mean(%x: tensor<2x3x4xf32>) -> tensor<2xf32> {
  %y = top.reduce %x {kind = 1 : i32, axes = array<i64: 1, 2>, keepDims = false} : (tensor<2x3x4xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK-LABEL: func.func @einsum
// CHECK: device.matmul %{{.*}} {transB = true} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x3x5xf32>
func.func @einsum(%a: tensor<2x3x4xf32>, %b: tensor<2x5x4xf32>) -> tensor<2x3x5xf32> {
  %y = top.einsum %a, %b {equation = "bij,bkj->bik"} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// One column of cos and sin applies to the whole half of a row.
// CHECK-LABEL: func.func @rope_column
// CHECK: device.map(%arg0, %{{.*}}) {
// CHECK: -> tensor<2x4x8xf32>
func.func @rope_column(%x: tensor<2x4x8xf32>, %cos: tensor<4x1xf32>, %sin: tensor<f32>) -> tensor<2x4x8xf32> {
  %y = top.rope %x, %cos, %sin : (tensor<2x4x8xf32>, tensor<4x1xf32>, tensor<f32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}

// CHECK-LABEL: func.func @block_matmul
// CHECK: device.block_matmul %arg0, %arg1 scales %arg2 mins %arg3 {block = 32 : i64
func.func @block_matmul(%x: tensor<3x40xf32>, %w: tensor<40x2xi8>, %s: tensor<2x2xf32>, %m: tensor<2x2xf32>) -> tensor<3x2xf32> {
  %y = top.block_matmul %x, %w, %s, %m {block = 32 : i64} : (tensor<3x40xf32>, tensor<40x2xi8>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
