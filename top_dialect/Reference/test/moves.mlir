// SPDX-License-Identifier: Apache-2.0
// Ops that move or create elements: every function returns pairs (actual, expected).

func.func @reshape() -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.reshape %0 {shape = array<i64: 3, -1>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %e0 = top.constant dense<[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  return %y, %e0 : tensor<3x2xf32>, tensor<3x2xf32>
}

func.func @reshape_dynamic() -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %1 = top.constant dense<[3, 2]> : tensor<2xi64> : tensor<2xi64>
  %y = top.reshape %0, %1 {shape = array<i64: -1, 2>} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  %e0 = top.constant dense<[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  return %y, %e0 : tensor<3x2xf32>, tensor<3x2xf32>
}

func.func @transpose() -> (tensor<4x2x3xi16>, tensor<4x2x3xi16>) {
  %0 = top.constant dense<[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]> : tensor<2x3x4xi16> : tensor<2x3x4xi16>
  %y = top.transpose %0 {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xi16>) -> tensor<4x2x3xi16>
  %e0 = top.constant dense<[[[0, 4, 8], [12, 16, 20]], [[1, 5, 9], [13, 17, 21]], [[2, 6, 10], [14, 18, 22]], [[3, 7, 11], [15, 19, 23]]]> : tensor<4x2x3xi16> : tensor<4x2x3xi16>
  return %y, %e0 : tensor<4x2x3xi16>, tensor<4x2x3xi16>
}

func.func @transpose_bool() -> (tensor<3x1xi1>, tensor<3x1xi1>) {
  %0 = top.constant dense<[[true, false, false]]> : tensor<1x3xi1> : tensor<1x3xi1>
  %y = top.transpose %0 {perm = array<i64: 1, 0>} : (tensor<1x3xi1>) -> tensor<3x1xi1>
  %e0 = top.constant dense<[[true], [false], [false]]> : tensor<3x1xi1> : tensor<3x1xi1>
  return %y, %e0 : tensor<3x1xi1>, tensor<3x1xi1>
}

func.func @concat() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %1 = top.constant dense<[[0.0], [3.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %y = top.concat %0, %1 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %e0 = top.constant dense<[[0.0, 1.0, 2.0, 0.0], [3.0, 4.0, 5.0, 3.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  return %y, %e0 : tensor<2x4xf32>, tensor<2x4xf32>
}

func.func @concat_empty() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = top.constant dense<> : tensor<0x3xf32> : tensor<0x3xf32>
  %1 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.concat %0, %1 {axis = 0 : i64} : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %e0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  return %y, %e0 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @slice() -> (tensor<2x2x2xi16>, tensor<2x2x2xi16>) {
  %0 = top.constant dense<[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]> : tensor<2x3x4xi16> : tensor<2x3x4xi16>
  %y = top.slice %0 {starts = array<i64: 0, 1, 0>, sizes = array<i64: 2, 2, 2>, steps = array<i64: 1, 1, 3>} : (tensor<2x3x4xi16>) -> tensor<2x2x2xi16>
  %e0 = top.constant dense<[[[4, 7], [8, 11]], [[16, 19], [20, 23]]]> : tensor<2x2x2xi16> : tensor<2x2x2xi16>
  return %y, %e0 : tensor<2x2x2xi16>, tensor<2x2x2xi16>
}

func.func @slice_negative_step() -> (tensor<2x3x2xi16>, tensor<2x3x2xi16>) {
  %0 = top.constant dense<[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]> : tensor<2x3x4xi16> : tensor<2x3x4xi16>
  %y = top.slice %0 {starts = array<i64: 1, 0, 3>, sizes = array<i64: 2, 3, 2>, steps = array<i64: -1, 1, -2>} : (tensor<2x3x4xi16>) -> tensor<2x3x2xi16>
  %e0 = top.constant dense<[[[15, 13], [19, 17], [23, 21]], [[3, 1], [7, 5], [11, 9]]]> : tensor<2x3x2xi16> : tensor<2x3x2xi16>
  return %y, %e0 : tensor<2x3x2xi16>, tensor<2x3x2xi16>
}

func.func @pad_constant() -> (tensor<3x6xf32>, tensor<3x6xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.pad %0 {pads = array<i64: 1, 2, 0, 1>, mode = 0 : i32, value = 1.5 : f64} : (tensor<2x3xf32>) -> tensor<3x6xf32>
  %e0 = top.constant dense<[[1.5, 1.5, 1.5, 1.5, 1.5, 1.5], [1.5, 1.5, 0.0, 1.0, 2.0, 1.5], [1.5, 1.5, 3.0, 4.0, 5.0, 1.5]]> : tensor<3x6xf32> : tensor<3x6xf32>
  return %y, %e0 : tensor<3x6xf32>, tensor<3x6xf32>
}

func.func @pad_reflect() -> (tensor<3x6xf32>, tensor<3x6xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.pad %0 {pads = array<i64: 1, 2, 0, 1>, mode = 1 : i32, value = 1.5 : f64} : (tensor<2x3xf32>) -> tensor<3x6xf32>
  %e0 = top.constant dense<[[5.0, 4.0, 3.0, 4.0, 5.0, 4.0], [2.0, 1.0, 0.0, 1.0, 2.0, 1.0], [5.0, 4.0, 3.0, 4.0, 5.0, 4.0]]> : tensor<3x6xf32> : tensor<3x6xf32>
  return %y, %e0 : tensor<3x6xf32>, tensor<3x6xf32>
}

func.func @pad_edge() -> (tensor<3x6xf32>, tensor<3x6xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.pad %0 {pads = array<i64: 1, 2, 0, 1>, mode = 2 : i32, value = 1.5 : f64} : (tensor<2x3xf32>) -> tensor<3x6xf32>
  %e0 = top.constant dense<[[0.0, 0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 0.0, 0.0, 1.0, 2.0, 2.0], [3.0, 3.0, 3.0, 4.0, 5.0, 5.0]]> : tensor<3x6xf32> : tensor<3x6xf32>
  return %y, %e0 : tensor<3x6xf32>, tensor<3x6xf32>
}

func.func @pad_wrap() -> (tensor<3x6xf32>, tensor<3x6xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.pad %0 {pads = array<i64: 1, 2, 0, 1>, mode = 3 : i32, value = 1.5 : f64} : (tensor<2x3xf32>) -> tensor<3x6xf32>
  %e0 = top.constant dense<[[4.0, 5.0, 3.0, 4.0, 5.0, 3.0], [1.0, 2.0, 0.0, 1.0, 2.0, 0.0], [4.0, 5.0, 3.0, 4.0, 5.0, 3.0]]> : tensor<3x6xf32> : tensor<3x6xf32>
  return %y, %e0 : tensor<3x6xf32>, tensor<3x6xf32>
}

func.func @pad_negative() -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.pad %0 {pads = array<i64: 0, -1, 1, 2>, mode = 0 : i32} : (tensor<2x3xf32>) -> tensor<3x4xf32>
  %e0 = top.constant dense<[[1.0, 2.0, 0.0, 0.0], [4.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  return %y, %e0 : tensor<3x4xf32>, tensor<3x4xf32>
}

func.func @pad_negative_edge() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.pad %0 {pads = array<i64: 0, 1, 0, -1>, mode = 2 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e0 = top.constant dense<[[0.0, 0.0, 1.0], [3.0, 3.0, 4.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  return %y, %e0 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @expand() -> (tensor<3x2x2xi32>, tensor<3x2x2xi32>) {
  %0 = top.constant dense<[[1], [2]]> : tensor<2x1xi32> : tensor<2x1xi32>
  %y = top.expand %0 {shape = array<i64: 3, 1, 2>} : (tensor<2x1xi32>) -> tensor<3x2x2xi32>
  %e0 = top.constant dense<[[[1, 1], [2, 2]], [[1, 1], [2, 2]], [[1, 1], [2, 2]]]> : tensor<3x2x2xi32> : tensor<3x2x2xi32>
  return %y, %e0 : tensor<3x2x2xi32>, tensor<3x2x2xi32>
}

func.func @tile() -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.tile %0 {repeats = array<i64: 2, 2>} : (tensor<2x3xf32>) -> tensor<4x6xf32>
  %e0 = top.constant dense<[[0.0, 1.0, 2.0, 0.0, 1.0, 2.0], [3.0, 4.0, 5.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 0.0, 1.0, 2.0], [3.0, 4.0, 5.0, 3.0, 4.0, 5.0]]> : tensor<4x6xf32> : tensor<4x6xf32>
  return %y, %e0 : tensor<4x6xf32>, tensor<4x6xf32>
}

func.func @shape() -> (tensor<2xi64>, tensor<2xi64>) {
  %0 = top.constant dense<[[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]]> : tensor<2x3x4xi16> : tensor<2x3x4xi16>
  %y = top.shape %0 {start = 1 : i64, end = 3 : i64} : (tensor<2x3x4xi16>) -> tensor<2xi64>
  %e0 = top.constant dense<[3, 4]> : tensor<2xi64> : tensor<2xi64>
  return %y, %e0 : tensor<2xi64>, tensor<2xi64>
}

func.func @range_float() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %1 = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %2 = top.constant dense<0.25> : tensor<f32> : tensor<f32>
  %y = top.range %0, %1, %2 : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  %e0 = top.constant dense<[1.0, 1.25, 1.5, 1.75]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @range_down() -> (tensor<3xi64>, tensor<3xi64>) {
  %0 = top.constant dense<5> : tensor<i64> : tensor<i64>
  %1 = top.constant dense<0> : tensor<i64> : tensor<i64>
  %2 = top.constant dense<-2> : tensor<i64> : tensor<i64>
  %y = top.range %0, %1, %2 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xi64>
  %e0 = top.constant dense<[5, 3, 1]> : tensor<3xi64> : tensor<3xi64>
  return %y, %e0 : tensor<3xi64>, tensor<3xi64>
}

func.func @constant_of_shape() -> (tensor<2x2xi32>, tensor<2x2xi32>) {
  %0 = top.constant dense<2> : tensor<2xi64> : tensor<2xi64>
  %y = top.constant_of_shape %0 {value = dense<7> : tensor<1xi32>} : (tensor<2xi64>) -> tensor<2x2xi32>
  %e0 = top.constant dense<7> : tensor<2x2xi32> : tensor<2x2xi32>
  return %y, %e0 : tensor<2x2xi32>, tensor<2x2xi32>
}

func.func @constant_of_shape_float() -> (tensor<2xf16>, tensor<2xf16>) {
  %0 = top.constant dense<[2]> : tensor<1xi64> : tensor<1xi64>
  %y = top.constant_of_shape %0 {value = dense<0.5> : tensor<1xf16>} : (tensor<1xi64>) -> tensor<2xf16>
  %e0 = top.constant dense<0.5> : tensor<2xf16> : tensor<2xf16>
  return %y, %e0 : tensor<2xf16>, tensor<2xf16>
}

func.func @trilu_upper() -> (tensor<3x3xi64>, tensor<3x3xi64>) {
  %0 = top.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9]]> : tensor<3x3xi64> : tensor<3x3xi64>
  %y = top.trilu %0 {k = 1 : i64} : (tensor<3x3xi64>) -> tensor<3x3xi64>
  %e0 = top.constant dense<[[0, 2, 3], [0, 0, 6], [0, 0, 0]]> : tensor<3x3xi64> : tensor<3x3xi64>
  return %y, %e0 : tensor<3x3xi64>, tensor<3x3xi64>
}

func.func @trilu_lower() -> (tensor<2x3x3xi64>, tensor<2x3x3xi64>) {
  %0 = top.constant dense<[[[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]]]> : tensor<2x3x3xi64> : tensor<2x3x3xi64>
  %y = top.trilu %0 {k = -1 : i64, upper = false} : (tensor<2x3x3xi64>) -> tensor<2x3x3xi64>
  %e0 = top.constant dense<[[[0, 0, 0], [4, 0, 0], [7, 8, 0]], [[0, 0, 0], [4, 0, 0], [7, 8, 0]]]> : tensor<2x3x3xi64> : tensor<2x3x3xi64>
  return %y, %e0 : tensor<2x3x3xi64>, tensor<2x3x3xi64>
}

func.func @depth_to_space() -> (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) {
  %0 = top.constant dense<[[[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]], [[6.0, 7.0]], [[8.0, 9.0]], [[10.0, 11.0]], [[12.0, 13.0]], [[14.0, 15.0]]]]> : tensor<1x8x1x2xf32> : tensor<1x8x1x2xf32>
  %y = top.depth_to_space %0 {blockSize = 2 : i64} : (tensor<1x8x1x2xf32>) -> tensor<1x2x2x4xf32>
  %e0 = top.constant dense<[[[[0.0, 4.0, 1.0, 5.0], [8.0, 12.0, 9.0, 13.0]], [[2.0, 6.0, 3.0, 7.0], [10.0, 14.0, 11.0, 15.0]]]]> : tensor<1x2x2x4xf32> : tensor<1x2x2x4xf32>
  return %y, %e0 : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>
}

func.func @depth_to_space_crd() -> (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) {
  %0 = top.constant dense<[[[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]], [[6.0, 7.0]], [[8.0, 9.0]], [[10.0, 11.0]], [[12.0, 13.0]], [[14.0, 15.0]]]]> : tensor<1x8x1x2xf32> : tensor<1x8x1x2xf32>
  %y = top.depth_to_space %0 {blockSize = 2 : i64, crd = true} : (tensor<1x8x1x2xf32>) -> tensor<1x2x2x4xf32>
  %e0 = top.constant dense<[[[[0.0, 2.0, 1.0, 3.0], [4.0, 6.0, 5.0, 7.0]], [[8.0, 10.0, 9.0, 11.0], [12.0, 14.0, 13.0, 15.0]]]]> : tensor<1x2x2x4xf32> : tensor<1x2x2x4xf32>
  return %y, %e0 : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>
}

func.func @space_to_depth() -> (tensor<1x8x1x2xf32>, tensor<1x8x1x2xf32>) {
  %0 = top.constant dense<[[[[0.0, 4.0, 1.0, 5.0], [8.0, 12.0, 9.0, 13.0]], [[2.0, 6.0, 3.0, 7.0], [10.0, 14.0, 11.0, 15.0]]]]> : tensor<1x2x2x4xf32> : tensor<1x2x2x4xf32>
  %y = top.space_to_depth %0 {blockSize = 2 : i64} : (tensor<1x2x2x4xf32>) -> tensor<1x8x1x2xf32>
  %e0 = top.constant dense<[[[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]], [[6.0, 7.0]], [[8.0, 9.0]], [[10.0, 11.0]], [[12.0, 13.0]], [[14.0, 15.0]]]]> : tensor<1x8x1x2xf32> : tensor<1x8x1x2xf32>
  return %y, %e0 : tensor<1x8x1x2xf32>, tensor<1x8x1x2xf32>
}
