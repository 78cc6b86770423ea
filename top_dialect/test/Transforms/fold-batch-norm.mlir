// RUN: tessera-opt %s --top-fold-batch-norm --split-input-file | FileCheck %s
// RUN: tessera-opt %s --top-fold-batch-norm --split-input-file --mlir-print-debuginfo | FileCheck %s --check-prefix=NAMES
// SPDX-License-Identifier: Apache-2.0

// conv -> batch_norm -> mul -> add becomes the conv. Channel 0: scale 2 / sqrt(3 + 1) * 5 = 5,
// shift ((1 - 2 * 1) * 5) + 7 = 2; channel 1: scale 4 / 2 * 1 = 2, shift 0 - 0 + 1 = 1.
// CHECK-LABEL: @conv_norm_scale
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{\[\[}}[5.000000e+00]], {{\[}}[6.000000e+00]]]> : tensor<2x1x1xf32>
// CHECK-DAG: %[[B:.*]] = top.constant dense<[2.000000e+00, 1.000000e+00]> : tensor<2xf32>
// CHECK: %[[Y:.*]] = top.conv %arg0, %[[W]], %[[B]] {{.*}}top.outputs = ["sum"]
// CHECK-NEXT: return %[[Y]]
// NAMES-LABEL: @conv_norm_scale
// NAMES: top.conv {{.*}} loc([[FUSED:#.*]])
// NAMES-DAG: [[CONV:#.*]] = loc("conv1")
// NAMES-DAG: [[BN:#.*]] = loc("bn1")
// NAMES-DAG: [[MUL:#.*]] = loc("scale1")
// NAMES-DAG: [[ADD:#.*]] = loc("shift1")
// NAMES: [[FUSED]] = loc(fused{{.*}}[[[CONV]], [[BN]], [[MUL]], [[ADD]]])
func.func @conv_norm_scale(%x: tensor<1x1x8xf32>) -> tensor<1x2x8xf32> {
  %w = top.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32> : tensor<2x1x1xf32>
  %scale = top.constant dense<[2.0, 4.0]> : tensor<2xf32> : tensor<2xf32>
  %bias = top.constant dense<[1.0, 0.0]> : tensor<2xf32> : tensor<2xf32>
  %mean = top.constant dense<[2.0, 0.0]> : tensor<2xf32> : tensor<2xf32>
  %var = top.constant dense<[3.0, 3.0]> : tensor<2xf32> : tensor<2xf32>
  %m = top.constant dense<[[5.0], [1.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %a = top.constant dense<[[7.0], [1.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %0 = top.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, top.outputs = ["c"]} : (tensor<1x1x8xf32>, tensor<2x1x1xf32>) -> tensor<1x2x8xf32> loc("conv1")
  %1 = top.batch_norm %0, %scale, %bias, %mean, %var {epsilon = 1.0 : f64, top.outputs = ["n"]} : (tensor<1x2x8xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x8xf32> loc("bn1")
  %2 = top.mul %1, %m : (tensor<1x2x8xf32>, tensor<2x1xf32>) -> tensor<1x2x8xf32> loc("scale1")
  %3 = top.add %2, %a {top.outputs = ["sum"]} : (tensor<1x2x8xf32>, tensor<2x1xf32>) -> tensor<1x2x8xf32> loc("shift1")
  return %3 : tensor<1x2x8xf32>
}

// -----

// Grouped transposed convolution: w is [C, OC / groups, K]; output channel = group * 1 + 0.
// CHECK-LABEL: @conv_transpose_groups
// CHECK: top.constant dense<{{\[\[}}[2.000000e+00]], {{\[}}[2.000000e+00]], {{\[}}[3.000000e+00]], {{\[}}[3.000000e+00]]]> : tensor<4x1x1xf32>
// CHECK: top.conv_transpose
// CHECK-NOT: top.mul
func.func @conv_transpose_groups(%x: tensor<1x4x8xf32>) -> tensor<1x2x8xf32> {
  %w = top.constant dense<1.0> : tensor<4x1x1xf32> : tensor<4x1x1xf32>
  %m = top.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %0 = top.conv_transpose %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, outputPadding = array<i64: 0>, groups = 2} : (tensor<1x4x8xf32>, tensor<4x1x1xf32>) -> tensor<1x2x8xf32>
  %1 = top.mul %0, %m : (tensor<1x2x8xf32>, tensor<2x1xf32>) -> tensor<1x2x8xf32>
  return %1 : tensor<1x2x8xf32>
}

// -----

// matmul: the channels are the last dim; with transB they are the rows of b.
// CHECK-LABEL: @matmul
// CHECK: top.constant dense<{{\[\[}}2.000000e+00, 3.000000e+00], [2.000000e+00, 3.000000e+00]]>
// CHECK: top.matmul
// CHECK: top.constant dense<{{\[\[}}2.000000e+00, 2.000000e+00], [3.000000e+00, 3.000000e+00]]>
// CHECK: top.matmul
// CHECK-NOT: top.mul
func.func @matmul(%x: tensor<5x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %w = top.constant dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %m = top.constant dense<[2.0, 3.0]> : tensor<2xf32> : tensor<2xf32>
  %0 = top.matmul %x, %w : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %1 = top.mul %m, %0 : (tensor<2xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  %2 = top.matmul %x, %w {transB = true} : (tensor<5x2xf32>, tensor<2x2xf32>) -> tensor<5x2xf32>
  %3 = top.mul %2, %m : (tensor<5x2xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  return %1, %3 : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// A batch_norm before the convolution (DenseNet) becomes mul and add, even though its input has other users.
// CHECK-LABEL: @pre_activation
// CHECK: %[[M:.*]] = top.constant dense<{{\[\[}}[1.000000e+00]], {{\[}}[2.000000e+00]]]> : tensor<2x1x1xf32>
// CHECK: %[[S:.*]] = top.mul %arg0, %[[M]]
// CHECK: %[[A:.*]] = top.constant dense<{{\[\[}}[0.000000e+00]], {{\[}}[1.000000e+00]]]> : tensor<2x1x1xf32>
// CHECK: %[[T:.*]] = top.add %[[S]], %[[A]]
// CHECK: %[[R:.*]] = top.relu %[[T]]
// CHECK: return %[[R]], %arg0
func.func @pre_activation(%x: tensor<1x2x4x4xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) {
  %scale = top.constant dense<[2.0, 4.0]> : tensor<2xf32> : tensor<2xf32>
  %bias = top.constant dense<[0.0, 1.0]> : tensor<2xf32> : tensor<2xf32>
  %zero = top.constant dense<0.0> : tensor<2xf32> : tensor<2xf32>
  %var = top.constant dense<3.0> : tensor<2xf32> : tensor<2xf32>
  %0 = top.batch_norm %x, %scale, %bias, %zero, %var {epsilon = 1.0 : f64} : (tensor<1x2x4x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %1 = top.relu %0 : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %1, %x : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}

// -----

// The convolution's own result has a user, so it cannot be folded. Constants along spatial dims are not per channel.
// CHECK-LABEL: @keeps
// CHECK: top.conv
// CHECK-NEXT: top.mul
// CHECK-NEXT: top.conv
// CHECK-NEXT: top.mul
func.func @keeps(%x: tensor<1x1x2xf32>) -> (tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) {
  %w = top.constant dense<1.0> : tensor<2x1x1xf32> : tensor<2x1x1xf32>
  %m = top.constant dense<[[5.0], [1.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %spatial = top.constant dense<[5.0, 1.0]> : tensor<2xf32> : tensor<2xf32>
  %0 = top.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %1 = top.mul %0, %m : (tensor<1x2x2xf32>, tensor<2x1xf32>) -> tensor<1x2x2xf32>
  %2 = top.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %3 = top.mul %2, %spatial : (tensor<1x2x2xf32>, tensor<2xf32>) -> tensor<1x2x2xf32>
  return %0, %1, %3 : tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

// -----

// Division by zero gives infinity, but an infinite weight times an operand of 0 gives NaN: it is not folded.
// CHECK-LABEL: @keeps_division_by_zero
// CHECK: top.conv
// CHECK: top.div
// CHECK: return
func.func @keeps_division_by_zero(%x: tensor<1x1x8xf32>) -> tensor<1x2x8xf32> {
  %w = top.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32> : tensor<2x1x1xf32>
  %d = top.constant dense<[[5.0], [0.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %0 = top.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x8xf32>, tensor<2x1x1xf32>) -> tensor<1x2x8xf32>
  %1 = top.div %0, %d : (tensor<1x2x8xf32>, tensor<2x1xf32>) -> tensor<1x2x8xf32>
  return %1 : tensor<1x2x8xf32>
}
