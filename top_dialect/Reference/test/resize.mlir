// SPDX-License-Identifier: Apache-2.0
// Interpolating resize: every function returns pairs (actual, expected).

func.func @nearest_up() -> (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 4, 4>, scales = array<f64: 1.0, 1.0, 2.0, 2.0>, mode = 0 : i32, coord = 3 : i32, round = 2 : i32} : (tensor<1x1x2x2xf32>) -> tensor<1x1x4x4xf32>
  %e0 = top.constant dense<[[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0], [3.0, 3.0, 4.0, 4.0], [3.0, 3.0, 4.0, 4.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  return %y, %e0 : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>
}

func.func @nearest_round_prefer_ceil() -> (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 3, 3>, scales = array<f64: 1.0, 1.0, 1.5, 1.5>, mode = 0 : i32, coord = 0 : i32, round = 1 : i32} : (tensor<1x1x2x2xf32>) -> tensor<1x1x3x3xf32>
  %e0 = top.constant dense<[[[[1.0, 2.0, 2.0], [3.0, 4.0, 4.0], [3.0, 4.0, 4.0]]]]> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  return %y, %e0 : tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>
}

func.func @nearest_ceil() -> (tensor<1x1x3x5xf32>, tensor<1x1x3x5xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 3, 5>, scales = array<f64: 1.0, 1.0, 1.5, 2.5>, mode = 0 : i32, coord = 3 : i32, round = 3 : i32} : (tensor<1x1x2x2xf32>) -> tensor<1x1x3x5xf32>
  %e0 = top.constant dense<[[[[1.0, 2.0, 2.0, 2.0, 2.0], [3.0, 4.0, 4.0, 4.0, 4.0], [3.0, 4.0, 4.0, 4.0, 4.0]]]]> : tensor<1x1x3x5xf32> : tensor<1x1x3x5xf32>
  return %y, %e0 : tensor<1x1x3x5xf32>, tensor<1x1x3x5xf32>
}

func.func @linear_half_pixel() -> (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 4, 4>, scales = array<f64: 1.0, 1.0, 2.0, 2.0>, mode = 1 : i32, coord = 0 : i32} : (tensor<1x1x2x2xf32>) -> tensor<1x1x4x4xf32>
  %e0 = top.constant dense<[[[[1.0, 1.25, 1.75, 2.0], [1.5, 1.75, 2.25, 2.5], [2.5, 2.75, 3.25, 3.5], [3.0, 3.25, 3.75, 4.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  return %y, %e0 : tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>
}

func.func @linear_align_corners() -> (tensor<1x1x4x3xf32>, tensor<1x1x4x3xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 4, 3>, scales = array<f64: 1.0, 1.0, 2.0, 1.5>, mode = 1 : i32, coord = 2 : i32} : (tensor<1x1x2x2xf32>) -> tensor<1x1x4x3xf32>
  %e0 = top.constant dense<[[[[1.0, 1.5, 2.0], [1.6666666, 2.1666667, 2.6666667], [2.3333333, 2.8333333, 3.3333333], [3.0, 3.5, 4.0]]]]> : tensor<1x1x4x3xf32> : tensor<1x1x4x3xf32>
  return %y, %e0 : tensor<1x1x4x3xf32>, tensor<1x1x4x3xf32>
}

func.func @linear_pytorch() -> (tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 3, 2>, scales = array<f64: 1.0, 1.0, 0.75, 0.5>, mode = 1 : i32, coord = 1 : i32} : (tensor<1x1x4x4xf32>) -> tensor<1x1x3x2xf32>
  %e0 = top.constant dense<[[[[2.1666667, 4.1666665], [7.5, 9.5], [12.833333, 14.833333]]]]> : tensor<1x1x3x2xf32> : tensor<1x1x3x2xf32>
  return %y, %e0 : tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>
}

func.func @linear_symmetric() -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 2, 2>, scales = array<f64: 1.0, 1.0, 0.6, 0.6>, mode = 1 : i32, coord = 4 : i32} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  %e0 = top.constant dense<[[[[4.3333335, 6.0], [11.0, 12.666667]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  return %y, %e0 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

func.func @linear_antialias() -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 2, 2>, scales = array<f64: 1.0, 1.0, 0.5, 0.5>, mode = 1 : i32, coord = 0 : i32, antialias = true} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  %e0 = top.constant dense<[[[[4.125, 5.875], [11.125, 12.875]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  return %y, %e0 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}

func.func @cubic() -> (tensor<1x1x6x3xf32>, tensor<1x1x6x3xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 6, 3>, scales = array<f64: 1.0, 1.0, 1.5, 0.75>, mode = 2 : i32, coord = 0 : i32} : (tensor<1x1x4x4xf32>) -> tensor<1x1x6x3xf32>
  %e0 = top.constant dense<[[[[0.7789352, 2.1527777, 3.5266204], [2.7511575, 4.125, 5.4988427], [5.978009, 7.351852, 8.725695], [8.274305, 9.648149, 11.021991], [11.501158, 12.875, 14.248842], [13.47338, 14.847222, 16.221066]]]]> : tensor<1x1x6x3xf32> : tensor<1x1x6x3xf32>
  return %y, %e0 : tensor<1x1x6x3xf32>, tensor<1x1x6x3xf32>
}

func.func @cubic_exclude_outside() -> (tensor<1x1x6x6xf32>, tensor<1x1x6x6xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 6, 6>, scales = array<f64: 1.0, 1.0, 1.5, 1.5>, mode = 2 : i32, coord = 0 : i32, excludeOutside = true, cubicCoeff = -0.5 : f64} : (tensor<1x1x4x4xf32>) -> tensor<1x1x6x6xf32>
  %e0 = top.constant dense<[[[[0.67105263, 1.1486068, 1.9035088, 2.5701754, 3.3250773, 3.8026316], [2.5812693, 3.0588236, 3.8137255, 4.480392, 5.2352943, 5.712848], [5.6008773, 6.0784316, 6.8333335, 7.5, 8.254902, 8.732456], [8.267544, 8.745098, 9.5, 10.166667, 10.921569, 11.399123], [11.287151, 11.764706, 12.519608, 13.186275, 13.941176, 14.418731], [13.197369, 13.674923, 14.429825, 15.096491, 15.851393, 16.328947]]]]> : tensor<1x1x6x6xf32> : tensor<1x1x6x6xf32>
  return %y, %e0 : tensor<1x1x6x6xf32>, tensor<1x1x6x6xf32>
}

func.func @cubic_antialias() -> (tensor<1x1x2x3xf32>, tensor<1x1x2x3xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 2, 3>, scales = array<f64: 1.0, 1.0, 0.5, 0.75>, mode = 2 : i32, coord = 0 : i32, antialias = true} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x3xf32>
  %e0 = top.constant dense<[[[[3.1159394, 4.4609375, 5.805936], [11.194064, 12.5390625, 13.884061]]]]> : tensor<1x1x2x3xf32> : tensor<1x1x2x3xf32>
  return %y, %e0 : tensor<1x1x2x3xf32>, tensor<1x1x2x3xf32>
}

func.func @linear_crop() -> (tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 3, 3>, scales = array<f64: 1.0, 1.0, 0.75, 0.75>, mode = 1 : i32, coord = 5 : i32, extrapolation = 10.0 : f64, roi = array<f64: 0.0, 0.0, 0.4, -0.2, 1.0, 1.0, 0.6, 1.2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x3x3xf32>
  %e0 = top.constant dense<[[[[10.0, 7.3, 10.0], [10.0, 8.5, 10.0], [10.0, 9.7, 10.0]]]]> : tensor<1x1x3x3xf32> : tensor<1x1x3x3xf32>
  return %y, %e0 : tensor<1x1x3x3xf32>, tensor<1x1x3x3xf32>
}

func.func @nearest_tf_half_pixel() -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) {
  %0 = top.constant dense<[[[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0], [13.0, 14.0, 15.0, 16.0]]]]> : tensor<1x1x4x4xf32> : tensor<1x1x4x4xf32>
  %y = top.resize %0 {sizes = array<i64: 1, 1, 2, 2>, scales = array<f64: 1.0, 1.0, 0.5, 0.5>, mode = 0 : i32, coord = 6 : i32, round = 2 : i32} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  %e0 = top.constant dense<[[[[6.0, 8.0], [14.0, 16.0]]]]> : tensor<1x1x2x2xf32> : tensor<1x1x2x2xf32>
  return %y, %e0 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>
}
