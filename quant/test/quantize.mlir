// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/table.json --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Weights: one scale per output channel, one i8 constant. Input: quantised immediately. Output: stays float.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor<1x2x4x4xf32>
// CHECK-DAG: %[[XS:.*]] = top.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG: %[[XZ:.*]] = top.constant dense<0> : tensor<i8>
// CHECK: %[[XQ:.*]] = top.quantize %[[X]], %[[XS]], %[[XZ]] {{.*}} -> tensor<1x2x4x4xi8>
// CHECK: %[[XD:.*]] = top.dequantize %[[XQ]], %[[XS]], %[[XZ]]
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{\[\[\[\[}}127{{\]\], \[\[}}-64{{\]\]\], \[\[\[}}127{{\]\], \[\[}}0{{\]\]\]\]}}> : tensor<2x2x1x1xi8>
// CHECK-DAG: %[[S:.*]] = top.constant dense<{{\[\[\[\[}}0.00999999977{{\]\]\], \[\[\[}}2.000000e-01{{\]\]\]\]}}> : tensor<2x1x1x1xf32>
// CHECK: %[[WD:.*]] = top.dequantize %[[W]], %[[S]],
// CHECK: %[[Y:.*]] = top.conv %[[XD]], %[[WD]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// An elementwise op between two convolutions writes integers; the convolution before it, with no other user, does not.
// The asymmetric range of a gives the zero point -128.
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = top.conv
// CHECK-NEXT: %[[A:.*]] = top.sigmoid %[[C]]
// CHECK-DAG: %[[S:.*]] = top.constant dense<2.500000e-01> : tensor<f32>
// CHECK-DAG: %[[Z:.*]] = top.constant dense<-128> : tensor<i8>
// CHECK: %[[Q:.*]] = top.quantize %[[A]], %[[S]], %[[Z]]
// CHECK: %[[D:.*]] = top.dequantize %[[Q]], %[[S]], %[[Z]]
// CHECK: top.conv %[[D]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_b: tensor<1xf32> {top.name = "b"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %c = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %a = top.sigmoid %c {top.outputs = ["a"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %y = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// A residual addition reads two convolutions. It is fused into the last one; the result of the other one is stored in
// integers. The output is float.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = top.conv
// CHECK: %[[Q:.*]] = top.quantize %[[B]]
// CHECK: %[[D:.*]] = top.dequantize %[[Q]]
// CHECK: %[[C:.*]] = top.conv
// CHECK-NEXT: %[[A:.*]] = top.add %[[D]], %[[C]]
// CHECK: top.quantize %[[A]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %c = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %a = top.add %b, %c {top.outputs = ["a"]} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %y = top.conv %a, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Moves share one set of parameters from one convolution to the next, whatever the table lists for a.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = top.conv
// CHECK-DAG: %[[S:.*]] = top.constant dense<2.500000e-01> : tensor<f32>
// CHECK: top.quantize %[[B]], %[[S]]
// CHECK: %[[P:.*]] = top.max_pool
// CHECK-DAG: %[[S2:.*]] = top.constant dense<2.500000e-01> : tensor<f32>
// CHECK-DAG: %[[Z2:.*]] = top.constant dense<0> : tensor<i8>
// CHECK: top.quantize %[[P]], %[[S2]], %[[Z2]]
// CHECK: %[[T:.*]] = top.transpose
// CHECK-DAG: %[[S3:.*]] = top.constant dense<2.500000e-01> : tensor<f32>
// CHECK: top.quantize %[[T]], %[[S3]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %p = top.max_pool %b {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %t = top.transpose %p {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %y = top.conv %t, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Concat: all inputs and the result get the union of the ranges, here that of c: scale 2, zero point 0.
// CHECK-LABEL: func.func @main
// CHECK: top.conv
// CHECK: %[[S:.*]] = top.constant dense<2.000000e+00> : tensor<f32>
// CHECK: top.quantize {{.*}}, %[[S]]
// CHECK: top.conv
// CHECK: %[[S2:.*]] = top.constant dense<2.000000e+00> : tensor<f32>
// CHECK: top.quantize {{.*}}, %[[S2]]
// CHECK: %[[K:.*]] = top.concat
// CHECK: %[[S3:.*]] = top.constant dense<2.000000e+00> : tensor<f32>
// CHECK: top.quantize %[[K]], %[[S3]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %c = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %k = top.concat %b, %c {axis = 1} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x4x4x4xf32>
  %wk = top.constant dense<1.0> : tensor<2x4x1x1xf32> : tensor<2x4x1x1xf32>
  %y = top.conv %k, %wk {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x4x4x4xf32>, tensor<2x4x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Means have their own parameters. Softmax stays float, as does its operand; its result is not quantised for an
// addition alone.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = top.conv
// CHECK: top.quantize %[[B]]
// CHECK: %[[P:.*]] = top.avg_pool
// CHECK: %[[S:.*]] = top.constant dense<2.500000e-01> : tensor<f32>
// CHECK: top.quantize %[[P]], %[[S]]
// CHECK: %[[C:.*]] = top.conv
// CHECK-NEXT: %[[M:.*]] = top.softmax %[[C]]
// CHECK-NEXT: %[[Y:.*]] = top.add %[[M]], %[[M]]
// CHECK-NEXT: return %[[Y]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %p = top.avg_pool %b {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["a"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %c = top.conv %p, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %m = top.softmax %c {axis = 1 : i64} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %y = top.add %m, %m {top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Matmul: scales along the columns of b, or along its rows if it is transposed. A channel with a huge bias gets a scale
// that keeps the bias below 2^28 steps: 2^38 / 2^28.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = top.constant dense<{{\[\[}}1.000000e+00, 2.000000e+00{{\]\]}}> : tensor<1x2xf32>
// CHECK: %[[W:.*]] = top.dequantize %{{.*}}, %[[S]], {{.*}} -> tensor<2x2xf32>
// CHECK: top.matmul %{{.*}}, %[[W]]
// CHECK: %[[S2:.*]] = top.constant dense<{{\[\[}}1.000000e+00{{\]}}, [1.024000e+03{{\]\]}}> : tensor<2x1xf32>
// CHECK: %[[W2:.*]] = top.dequantize %{{.*}}, %[[S2]], {{.*}} -> tensor<2x2xf32>
// CHECK: top.matmul %{{.*}}, %[[W2]]
func.func @main(%x: tensor<3x2xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<3x2xf32> {top.name = "y"}, tensor<3x2xf32> {top.name = "z"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.constant dense<[[127.0, 254.0], [1.0, 2.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %t = top.constant dense<[[127.0, 1.0], [254.0, 2.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %bias = top.constant dense<[0.0, 274877906944.0]> : tensor<2xf32> : tensor<2xf32>
  %m = top.matmul %x, %b {top.outputs = ["y"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %y = top.matmul %x, %t, %bias {transB = true} : (tensor<3x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  return %m, %y : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// The maximum of integers is one of them; a mean has its own parameters.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = top.conv
// CHECK: %[[S:.*]] = top.constant dense<2.500000e-01> : tensor<f32>
// CHECK: top.quantize %[[B]], %[[S]]
// CHECK: %[[M:.*]] = top.reduce
// CHECK-DAG: %[[S2:.*]] = top.constant dense<2.500000e-01> : tensor<f32>
// CHECK-DAG: %[[Z2:.*]] = top.constant dense<0> : tensor<i8>
// CHECK: top.quantize %[[M]], %[[S2]], %[[Z2]]
// CHECK: %[[A:.*]] = top.reduce
// CHECK: %[[S3:.*]] = top.constant dense<2.000000e+00> : tensor<f32>
// CHECK: top.quantize %[[A]], %[[S3]]
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}) -> (tensor<1x2xf32> {top.name = "y"}) {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %b = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["b"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %m = top.reduce %b {kind = 2 : i32, axes = array<i64: 3>, keepDims = false} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4xf32>
  %c = top.reduce %m {kind = 1 : i32, axes = array<i64: 2>, keepDims = false, top.outputs = ["c"]} : (tensor<1x2x4xf32>) -> tensor<1x2xf32>
  %k = top.constant dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.matmul %c, %k {top.outputs = ["y"]} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// -----

// An input that is also an output is returned unchanged.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor
// CHECK: top.quantize %[[X]]
// CHECK: return %[[X]], %
func.func @main(%x: tensor<3x2xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<3x2xf32> {top.name = "z"}, tensor<3x2xf32> {top.name = "y"}) {
  %k = top.constant dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.matmul %x, %k {top.outputs = ["y"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %x, %y : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// Rounding preserves a kernel's sum: eight weights of 0.4 steps sum to 3.2, so three of them are rounded up.
// CHECK-LABEL: func.func @main
// CHECK: top.constant dense<{{\[\[\[\[}}127, 1, 1], [1, 0, 0], [0, 0, 0]]]]> : tensor<1x1x3x3xi8>
func.func @main(%x: tensor<1x1x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<1x1x2x2xf32> {top.name = "y"}) {
  %w = top.constant dense<[[[[127.0, 0.4, 0.4], [0.4, 0.4, 0.4], [0.4, 0.4, 0.4]]]]> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x1x4x4xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32>
  return %y : tensor<1x1x2x2xf32>
}
