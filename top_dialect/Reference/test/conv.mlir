// SPDX-License-Identifier: Apache-2.0
// Convolution, matmul, pooling: every function returns pairs (actual, expected).

func.func @conv_2d() -> (tensor<1x3x4x5xf32>, tensor<1x3x4x5xf32>) {
  %0 = top.constant dense<[[[[1.0, -0.25, 1.25, -0.5, -0.75], [0.75, 0.5, 1.5, -1.0, 0.25], [-2.0, 1.25, 0.25, 0.25, -0.25], [-1.75, -2.0, 0.0, 1.25, 1.75]], [[0.5, 0.0, -0.25, -1.25, -0.5], [-1.25, -1.0, 0.75, 1.0, 2.0], [1.25, 0.25, 1.75, -2.0, -1.0], [1.75, -1.5, -0.25, 0.0, 0.25]]]]> : tensor<1x2x4x5xf32> : tensor<1x2x4x5xf32>
  %1 = top.constant dense<[[[[-1.25, -0.25, -1.0], [-0.75, -0.5, 0.0], [-2.0, -1.5, 0.5]], [[1.75, 1.75, -0.25], [0.5, 1.5, -2.0], [-1.75, 1.25, -1.25]]], [[[-2.0, 1.25, -0.5], [-0.5, -1.5, 1.0], [0.75, -0.25, 1.25]], [[0.0, 0.75, 1.0], [0.75, -1.0, -0.25], [-0.25, 1.25, -1.0]]], [[[2.0, -2.0, 1.25], [0.5, -0.25, 0.5], [-2.0, 1.0, -1.75]], [[0.25, -1.75, -1.5], [1.0, -0.25, -1.5], [0.5, -2.0, 0.25]]]]> : tensor<3x2x3x3xf32> : tensor<3x2x3x3xf32>
  %2 = top.constant dense<[-0.5, -1.5, -0.25]> : tensor<3xf32> : tensor<3xf32>
  %y = top.conv %0, %1, %2 {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x5xf32>, tensor<3x2x3x3xf32>, tensor<3xf32>) -> tensor<1x3x4x5xf32>
  %e0 = top.constant dense<[[[[-1.4375, -1.875, -1.125, -6.125, 1.25], [5.0, -8.25, -1.125, -11.75, 3.5], [4.9375, -6.9375, 11.4375, -1.125, -1.4375], [7.375, 5.0625, 2.0, -2.0625, -7.4375]], [[-3.875, 0.6875, -4.25, -0.1875, 0.875], [4.5, -7.6875, -0.5625, -7.75, -3.4375], [1.8125, -6.375, -0.25, 1.375, 2.875], [-4.1875, 12.625, -3.125, -4.4375, -6.5625]], [[1.375, -0.25, 1.5, -4.625, -2.6875], [-8.1875, 8.5625, -11.4375, 8.625, 1.0], [0.875, 5.125, -1.5, 2.3125, -8.8125], [4.0, -7.0625, 0.25, 4.8125, 2.125]]]]> : tensor<1x3x4x5xf32> : tensor<1x3x4x5xf32>
  return %y, %e0 : tensor<1x3x4x5xf32>, tensor<1x3x4x5xf32>
}

func.func @conv_asymmetric() -> (tensor<1x3x2x3xf32>, tensor<1x3x2x3xf32>) {
  %0 = top.constant dense<[[[[1.0, -0.25, 1.25, -0.5, -0.75], [0.75, 0.5, 1.5, -1.0, 0.25], [-2.0, 1.25, 0.25, 0.25, -0.25], [-1.75, -2.0, 0.0, 1.25, 1.75]], [[0.5, 0.0, -0.25, -1.25, -0.5], [-1.25, -1.0, 0.75, 1.0, 2.0], [1.25, 0.25, 1.75, -2.0, -1.0], [1.75, -1.5, -0.25, 0.0, 0.25]]]]> : tensor<1x2x4x5xf32> : tensor<1x2x4x5xf32>
  %1 = top.constant dense<[[[[-1.25, -0.25, -1.0], [-0.75, -0.5, 0.0], [-2.0, -1.5, 0.5]], [[1.75, 1.75, -0.25], [0.5, 1.5, -2.0], [-1.75, 1.25, -1.25]]], [[[-2.0, 1.25, -0.5], [-0.5, -1.5, 1.0], [0.75, -0.25, 1.25]], [[0.0, 0.75, 1.0], [0.75, -1.0, -0.25], [-0.25, 1.25, -1.0]]], [[[2.0, -2.0, 1.25], [0.5, -0.25, 0.5], [-2.0, 1.0, -1.75]], [[0.25, -1.75, -1.5], [1.0, -0.25, -1.5], [0.5, -2.0, 0.25]]]]> : tensor<3x2x3x3xf32> : tensor<3x2x3x3xf32>
  %y = top.conv %0, %1 {strides = array<i64: 2, 1>, pads = array<i64: 1, 0, 0, 2>, dilations = array<i64: 1, 2>} : (tensor<1x2x4x5xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x2x3xf32>
  %e0 = top.constant dense<[[[[-3.5, 2.0625, -3.625], [4.375, 0.4375, 0.3125]], [[-2.625, 4.25, 4.1875], [2.5, -1.75, 1.3125]], [[-0.9375, -4.1875, -5.6875], [-2.8125, 6.8125, 2.5]]]]> : tensor<1x3x2x3xf32> : tensor<1x3x2x3xf32>
  return %y, %e0 : tensor<1x3x2x3xf32>, tensor<1x3x2x3xf32>
}

func.func @conv_groups() -> (tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>) {
  %0 = top.constant dense<[[[[-0.25, 2.0, 1.75], [-0.75, 0.5, 2.0], [-0.75, 1.25, -1.75]], [[0.5, -2.0, -0.25], [-2.0, 1.5, 1.25], [0.75, -0.5, 1.25]], [[1.75, 0.25, -1.5], [-0.25, -0.75, -1.0], [-0.75, 0.0, 1.25]], [[1.75, 1.25, 0.0], [1.5, 1.25, 2.0], [0.5, 1.25, -1.25]]], [[[-1.5, 1.5, 1.5], [-2.0, 0.75, -1.25], [-1.75, -1.5, 2.0]], [[-2.0, 0.5, 0.0], [1.25, -1.25, -2.0], [0.0, 1.25, 1.75]], [[0.25, -2.0, 1.0], [0.5, 1.0, 1.75], [1.5, 0.75, -0.25]], [[-1.25, 1.75, 1.5], [-1.5, -1.0, -1.0], [-2.0, -1.25, -0.75]]]]> : tensor<2x4x3x3xf32> : tensor<2x4x3x3xf32>
  %1 = top.constant dense<[[[[-0.5, 1.75], [-0.25, -0.75]], [[1.75, -2.0], [0.5, 0.5]]], [[[-1.5, -1.5], [-1.0, -2.0]], [[1.5, -0.25], [-1.25, -0.5]]], [[[0.25, 0.5], [1.25, -0.5]], [[-0.5, 2.0], [2.0, 1.0]]], [[[0.25, -2.0], [2.0, 0.25]], [[2.0, 1.75], [0.5, -1.0]]]]> : tensor<4x2x2x2xf32> : tensor<4x2x2x2xf32>
  %y = top.conv %0, %1 {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 2} : (tensor<2x4x3x3xf32>, tensor<4x2x2x2xf32>) -> tensor<2x4x2x2xf32>
  %e0 = top.constant dense<[[[[8.0625, -1.1875], [-5.875, 4.75]], [[0.125, -15.5625], [-5.4375, 0.4375]], [[6.5, 2.75], [2.625, 3.3125]], [[4.4375, 2.4375], [4.125, 10.0]]], [[[-1.1875, 1.875], [9.1875, -0.375]], [[-3.5625, 0.5625], [8.1875, -5.5625]], [[-0.6875, -0.5], [-4.375, -2.5625]], [[6.125, 6.5625], [-3.1875, -5.4375]]]]> : tensor<2x4x2x2xf32> : tensor<2x4x2x2xf32>
  return %y, %e0 : tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>
}

func.func @conv_depthwise_relu6() -> (tensor<1x3x3x3xf32>, tensor<1x3x3x3xf32>) {
  %0 = top.constant dense<[[[[1.5, 1.5, -1.25], [2.0, 1.5, 1.75], [-0.25, 1.5, 1.25]], [[1.75, 1.5, 1.0], [-0.75, 1.0, 1.0], [1.0, -0.25, -0.25]], [[0.75, 1.0, -0.5], [2.0, -0.75, -1.5], [-1.75, 0.75, -0.75]]]]> : tensor<1x3x3x3xf32> : tensor<1x3x3x3xf32>
  %1 = top.constant dense<[[[[0.25, 0.75, -1.75], [-2.0, -0.25, -2.0], [-1.5, -1.25, -0.5]]], [[[1.0, -0.25, -0.5], [1.75, 2.0, -0.5], [1.25, -1.0, -1.5]]], [[[0.5, 0.25, 0.25], [1.25, 1.0, 0.5], [0.75, 0.25, -1.0]]]]> : tensor<3x1x3x3xf32> : tensor<3x1x3x3xf32>
  %y = top.conv %0, %1 {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 3, relu = true, reluLimit = 1.0 : f64} : (tensor<1x3x3x3xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x3x3xf32>
  %e0 = top.constant dense<[[[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], [[1.0, 1.0, 0.0], [0.875, 1.0, 0.0], [0.0, 0.0, 0.0]]]]> : tensor<1x3x3x3xf32> : tensor<1x3x3x3xf32>
  return %y, %e0 : tensor<1x3x3x3xf32>, tensor<1x3x3x3xf32>
}

func.func @conv_1d() -> (tensor<1x2x3xf32>, tensor<1x2x3xf32>) {
  %0 = top.constant dense<[[[2.0, 2.0, 0.5, -1.25, 0.25], [-1.5, -1.0, 1.25, 1.5, 2.0]]]> : tensor<1x2x5xf32> : tensor<1x2x5xf32>
  %1 = top.constant dense<[[[0.0, -1.5, -1.25], [1.25, 0.25, -1.0]], [[-1.0, 0.0, -1.75], [-0.5, 1.5, 0.0]]]> : tensor<2x2x3xf32> : tensor<2x2x3xf32>
  %y = top.conv %0, %1 {strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>} : (tensor<1x2x5xf32>, tensor<2x2x3xf32>) -> tensor<1x2x3xf32>
  %e0 = top.constant dense<[[[-4.875, -1.625, 2.0], [-5.75, 2.5625, 3.5]]]> : tensor<1x2x3xf32> : tensor<1x2x3xf32>
  return %y, %e0 : tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

func.func @conv_3d() -> (tensor<1x1x1x1x1xf32>, tensor<1x1x1x1x1xf32>) {
  %0 = top.constant dense<[[[[[-0.25, 2.0], [-0.75, -1.5]], [[-1.5, 1.5], [0.75, 0.5]]]]]> : tensor<1x1x2x2x2xf32> : tensor<1x1x2x2x2xf32>
  %1 = top.constant dense<[[[[[0.0, 2.0], [-0.75, 0.25]], [[1.25, 0.0], [0.5, 0.75]]]]]> : tensor<1x1x2x2x2xf32> : tensor<1x1x2x2x2xf32>
  %y = top.conv %0, %1 {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x1x2x2x2xf32>, tensor<1x1x2x2x2xf32>) -> tensor<1x1x1x1x1xf32>
  %e0 = top.constant dense<[[[[[3.0625]]]]]> : tensor<1x1x1x1x1xf32> : tensor<1x1x1x1x1xf32>
  return %y, %e0 : tensor<1x1x1x1x1xf32>, tensor<1x1x1x1x1xf32>
}

func.func @conv_transpose() -> (tensor<1x3x7x3xf32>, tensor<1x3x7x3xf32>) {
  %0 = top.constant dense<[[[[-0.5, -2.0], [1.5, -1.0], [0.75, -1.25]], [[-2.0, 1.5], [-0.5, -2.0], [-1.75, -0.5]]]]> : tensor<1x2x3x2xf32> : tensor<1x2x3x2xf32>
  %1 = top.constant dense<[[[[-1.0, -0.75], [-0.5, 1.5], [-0.25, 2.0]], [[-0.25, 0.75], [1.5, 0.0], [0.0, 0.0]], [[2.0, -1.5], [-2.0, -0.25], [1.0, -1.75]]], [[[0.5, 0.25], [0.75, -0.75], [-0.75, 0.5]], [[1.5, 0.5], [0.0, 2.0], [1.0, 1.25]], [[2.0, -1.0], [-1.0, -1.25], [1.0, -1.5]]]]> : tensor<2x3x3x2xf32> : tensor<2x3x3x2xf32>
  %2 = top.constant dense<[1.0, -2.0, -2.0]> : tensor<3xf32> : tensor<3xf32>
  %y = top.conv_transpose %0, %1, %2 {strides = array<i64: 2, 2>, pads = array<i64: 1, 0, 0, 1>, dilations = array<i64: 1, 1>, outputPadding = array<i64: 1, 0>} : (tensor<1x2x3x2xf32>, tensor<2x3x3x2xf32>, tensor<3xf32>) -> tensor<1x3x7x3xf32>
  %e0 = top.constant dense<[[[[-0.25, 1.75, 3.125], [0.875, -2.25, 0.375], [-0.125, 3.625, 0.0], [-0.625, 2.75, 3.75], [-0.6875, 3.4375, 1.25], [2.125, 1.625, 1.6875], [1.0, 1.0, 1.0]], [[-2.75, -6.0, -5.0], [-5.125, -3.625, -3.25], [0.25, -3.0, -3.5], [-5.3125, -2.9375, -4.4375], [-0.875, -5.5, -3.875], [-3.75, -4.1875, -2.5], [-2.0, -2.0, -2.0]], [[1.0, 0.625, 0.5], [-2.5, 0.125, -8.5], [-4.5, -1.75, 2.0], [-3.0, -3.25, -8.5], [-1.75, 0.0, 1.0], [-3.0, -0.6875, -3.75], [-2.0, -2.0, -2.0]]]]> : tensor<1x3x7x3xf32> : tensor<1x3x7x3xf32>
  return %y, %e0 : tensor<1x3x7x3xf32>, tensor<1x3x7x3xf32>
}

func.func @conv_transpose_groups() -> (tensor<1x2x4x3xf32>, tensor<1x2x4x3xf32>) {
  %0 = top.constant dense<[[[[1.75, -1.0], [0.5, 1.0]], [[-0.75, 2.0], [-2.0, 0.75]], [[1.0, 0.75], [-1.25, 1.0]], [[1.75, 1.25], [-1.75, -1.0]]]]> : tensor<1x4x2x2xf32> : tensor<1x4x2x2xf32>
  %1 = top.constant dense<[[[[-0.25, -1.25], [-1.5, -1.5]]], [[[0.5, 1.5], [-0.5, -0.5]]], [[[2.0, -0.75], [-0.5, 0.0]]], [[[0.0, -0.75], [-0.75, -0.25]]]]> : tensor<4x1x2x2xf32> : tensor<4x1x2x2xf32>
  %y = top.conv_transpose %0, %1 {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 1>, outputPadding = array<i64: 0, 0>, groups = 2} : (tensor<1x4x2x2xf32>, tensor<4x1x2x2xf32>) -> tensor<1x2x4x3xf32>
  %e0 = top.constant dense<[[[[-0.8125, -2.0625, 4.25], [-1.125, -3.5, -0.125], [-2.25, -1.75, 0.5], [0.25, -1.625, -1.875]], [[2.0, -0.5625, -1.5], [-2.5, 4.25, 0.0], [-1.8125, -1.75, -0.3125], [1.9375, 0.6875, 0.25]]]]> : tensor<1x2x4x3xf32> : tensor<1x2x4x3xf32>
  return %y, %e0 : tensor<1x2x4x3xf32>, tensor<1x2x4x3xf32>
}

func.func @matmul_bias() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = top.constant dense<[[1.5, -0.75, 0.25], [1.5, -1.75, 1.25]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %1 = top.constant dense<[[0.75, 1.5, 0.25, -1.25], [-1.25, -1.25, -1.75, -1.25], [2.0, -0.75, -2.0, -0.75]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %2 = top.constant dense<[1.5, -0.25, -0.5, 0.5]> : tensor<4xf32> : tensor<4xf32>
  %y = top.matmul %0, %1, %2 : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %e0 = top.constant dense<[[4.0625, 2.75, 0.6875, -0.625], [7.3125, 3.25, 0.4375, -0.125]]> : tensor<2x4xf32> : tensor<2x4xf32>
  return %y, %e0 : tensor<2x4xf32>, tensor<2x4xf32>
}

func.func @matmul_transposed() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = top.constant dense<[[1.5, 1.5], [-0.75, -1.75], [0.25, 1.25]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %1 = top.constant dense<[[0.75, -1.25, 2.0], [1.5, -1.25, -0.75], [0.25, -1.75, -2.0], [-1.25, -1.25, -0.75]]> : tensor<4x3xf32> : tensor<4x3xf32>
  %y = top.matmul %0, %1 {transA = true, transB = true} : (tensor<3x2xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
  %e0 = top.constant dense<[[2.5625, 3.0, 1.1875, -1.125], [5.8125, 3.5, 0.9375, -0.625]]> : tensor<2x4xf32> : tensor<2x4xf32>
  return %y, %e0 : tensor<2x4xf32>, tensor<2x4xf32>
}

func.func @matmul_batches() -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>) {
  %0 = top.constant dense<[[[[-2.0, 1.5, -1.0], [-0.25, -0.25, 0.5]]], [[[1.0, -0.25, -0.25], [-2.0, 1.0, -0.5]]]]> : tensor<2x1x2x3xf32> : tensor<2x1x2x3xf32>
  %1 = top.constant dense<[[[-2.0, -0.75], [0.25, 1.0], [1.25, -0.5]], [[-1.5, 1.25], [0.75, 1.75], [-0.25, 2.0]], [[0.75, 1.75], [-0.5, 0.75], [-0.75, -1.75]]]> : tensor<3x3x2xf32> : tensor<3x3x2xf32>
  %y = top.matmul %0, %1 : (tensor<2x1x2x3xf32>, tensor<3x3x2xf32>) -> tensor<2x3x2x2xf32>
  %e0 = top.constant dense<[[[[3.125, 3.5], [1.0625, -0.3125]], [[4.375, -1.875], [0.0625, 0.25]], [[-1.5, -0.625], [-0.4375, -1.5]]], [[[-2.375, -0.875], [3.625, 2.75]], [[-1.625, 0.3125], [3.875, -1.75]], [[1.0625, 2.0], [-1.625, -1.875]]]]> : tensor<2x3x2x2xf32> : tensor<2x3x2x2xf32>
  return %y, %e0 : tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>
}

func.func @matmul_relu() -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  %0 = top.constant dense<[[1.0]]> : tensor<1x1xf32> : tensor<1x1xf32>
  %1 = top.constant dense<[[-2.0, 0.5, 9.0]]> : tensor<1x3xf32> : tensor<1x3xf32>
  %y = top.matmul %0, %1 {relu = true, reluLimit = 6.0 : f64} : (tensor<1x1xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  %e0 = top.constant dense<[[0.0, 0.5, 6.0]]> : tensor<1x3xf32> : tensor<1x3xf32>
  return %y, %e0 : tensor<1x3xf32>, tensor<1x3xf32>
}

func.func @matmul_int() -> (tensor<2x2xi32>, tensor<2x2xi32>) {
  %0 = top.constant dense<[[1, 2], [3, -4]]> : tensor<2x2xi32> : tensor<2x2xi32>
  %1 = top.constant dense<[[1, 2], [3, -4]]> : tensor<2x2xi32> : tensor<2x2xi32>
  %y = top.matmul %0, %1 : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  %e0 = top.constant dense<[[7, -6], [-9, 22]]> : tensor<2x2xi32> : tensor<2x2xi32>
  return %y, %e0 : tensor<2x2xi32>, tensor<2x2xi32>
}

func.func @max_pool() -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %0 = top.constant dense<[[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0], [12.0, 13.0, 14.0, 15.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  %e0 = top.constant dense<[[[[5.0, 7.0], [13.0, 15.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  return %y, %e0 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

func.func @max_pool_negative_padded() -> (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) {
  %0 = top.constant dense<[[[[-1.0, -2.0, -3.0, -4.0], [-5.0, -6.0, -7.0, -8.0], [-9.0, -10.0, -11.0, -12.0], [-13.0, -14.0, -15.0, -16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x3x3xf32>
  %e0 = top.constant dense<[[[[-1.0, -2.0, -4.0], [-5.0, -6.0, -8.0], [-13.0, -14.0, -16.0]]]]> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  return %y, %e0 : tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>
}

func.func @max_pool_dilated() -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %0 = top.constant dense<[[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0], [12.0, 13.0, 14.0, 15.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  %e0 = top.constant dense<[[[[10.0, 11.0], [14.0, 15.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  return %y, %e0 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

func.func @max_pool_ceil() -> (tensor<1x1x3xf32>, tensor<1x1x3xf32>) {
  %0 = top.constant dense<[[[0.0, 1.0, 2.0, 3.0, 4.0]]]> : tensor<1x1x5xf32> : tensor<1x1x5xf32>
  %y = top.max_pool %0 {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, ceilMode = true} : (tensor<1x1x5xf32>) -> tensor<1x1x3xf32>
  %e0 = top.constant dense<[[[1.0, 3.0, 4.0]]]> : tensor<1x1x3xf32> : tensor<1x1x3xf32>
  return %y, %e0 : tensor<1x1x3xf32>, tensor<1x1x3xf32>
}

func.func @max_pool_uint8() -> (tensor<1x1x2xui8>, tensor<1x1x2xui8>) {
  %0 = top.constant dense<[[[1, 200, 3, 4]]]> : tensor<1x1x4xui8> : tensor<1x1x4xui8>
  %y = top.max_pool %0 {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x1x4xui8>) -> tensor<1x1x2xui8>
  %e0 = top.constant dense<[[[200, 4]]]> : tensor<1x1x2xui8> : tensor<1x1x2xui8>
  return %y, %e0 : tensor<1x1x2xui8>, tensor<1x1x2xui8>
}

func.func @avg_pool() -> (tensor<1x1x3xf32>, tensor<1x1x3xf32>) {
  %0 = top.constant dense<[[[1.0, 2.0, 3.0, 4.0, 5.0]]]> : tensor<1x1x5xf32> : tensor<1x1x5xf32>
  %y = top.avg_pool %0 {kernel = array<i64: 3>, strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>} : (tensor<1x1x5xf32>) -> tensor<1x1x3xf32>
  %e0 = top.constant dense<[[[1.5, 3.0, 4.5]]]> : tensor<1x1x3xf32> : tensor<1x1x3xf32>
  return %y, %e0 : tensor<1x1x3xf32>, tensor<1x1x3xf32>
}

func.func @avg_pool_include_pad() -> (tensor<1x1x3xf32>, tensor<1x1x3xf32>) {
  %0 = top.constant dense<[[[1.0, 2.0, 3.0, 4.0, 5.0]]]> : tensor<1x1x5xf32> : tensor<1x1x5xf32>
  %y = top.avg_pool %0 {kernel = array<i64: 3>, strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>, countIncludePad = true} : (tensor<1x1x5xf32>) -> tensor<1x1x3xf32>
  %e0 = top.constant dense<[[[1.0, 3.0, 3.0]]]> : tensor<1x1x3xf32> : tensor<1x1x3xf32>
  return %y, %e0 : tensor<1x1x3xf32>, tensor<1x1x3xf32>
}

func.func @avg_pool_ceil_include_pad() -> (tensor<1x1x2xf32>, tensor<1x1x2xf32>) {
  %0 = top.constant dense<[[[1.0, 2.0, 3.0, 4.0]]]> : tensor<1x1x4xf32> : tensor<1x1x4xf32>
  %y = top.avg_pool %0 {kernel = array<i64: 3>, strides = array<i64: 3>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, ceilMode = true, countIncludePad = true} : (tensor<1x1x4xf32>) -> tensor<1x1x2xf32>
  %e0 = top.constant dense<[[[2.0, 4.0]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  return %y, %e0 : tensor<1x1x2xf32>, tensor<1x1x2xf32>
}
