// SPDX-License-Identifier: Apache-2.0
// Reductions and selections: every function returns pairs (actual, expected).

func.func @reduce_sum() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 0 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[0.0], [14.5]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_mean() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 1 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[0.0], [3.625]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_max() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 2 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[6.0], [7.0]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_min() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 3 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[-5.0], [0.5]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_prod() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 4 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[60.0], [42.0]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_l1() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 5 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[14.0], [14.5]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_l2() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 6 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[8.124039], [8.616844]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_sum_square() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 7 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[66.0], [74.25]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_log_sum() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.5, 2.5], [3.5, 4.5]], [[5.5, 6.5], [7.5, 1.0]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 8 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[2.7725887], [2.8033605]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_log_sum_exp() -> (tensor<1x2x1xf32>, tensor<1x2x1xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 9 : i32, axes = array<i64: 0, 2>} : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  %e0 = top.constant dense<[[[6.0070653], [7.0672903]]]> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  return %y, %e0 : tensor<1x2x1xf32>, tensor<1x2x1xf32>
}

func.func @reduce_drop_dims() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 0 : i32, axes = array<i64: 1>, keepDims = false} : (tensor<2x2x2xf32>) -> tensor<2x2xf32>
  %e0 = top.constant dense<[[4.0, 2.0], [2.0, 6.5]]> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e0 : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @reduce_identity() -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %y = top.reduce %0 {kind = 0 : i32, axes = array<i64>} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %e0 = top.constant dense<[[[1.0, -2.0], [3.0, 4.0]], [[-5.0, 6.0], [7.0, 0.5]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  return %y, %e0 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}

func.func @reduce_int_mean_truncates() -> (tensor<1xi32>, tensor<1xi32>) {
  %0 = top.constant dense<[1, 2, 4]> : tensor<3xi32> : tensor<3xi32>
  %y = top.reduce %0 {kind = 1 : i32, axes = array<i64: 0>} : (tensor<3xi32>) -> tensor<1xi32>
  %e0 = top.constant dense<[2]> : tensor<1xi32> : tensor<1xi32>
  return %y, %e0 : tensor<1xi32>, tensor<1xi32>
}

func.func @reduce_max_nan() -> (tensor<1xf32>, tensor<1xf32>) {
  %0 = top.constant dense<[1.0, 0x7FC00000, 2.0]> : tensor<3xf32> : tensor<3xf32>
  %y = top.reduce %0 {kind = 2 : i32, axes = array<i64: 0>} : (tensor<3xf32>) -> tensor<1xf32>
  %e0 = top.constant dense<[0x7FC00000]> : tensor<1xf32> : tensor<1xf32>
  return %y, %e0 : tensor<1xf32>, tensor<1xf32>
}

func.func @reduce_max_int8() -> (tensor<1xi8>, tensor<1xi8>) {
  %0 = top.constant dense<[-5, -7]> : tensor<2xi8> : tensor<2xi8>
  %y = top.reduce %0 {kind = 2 : i32, axes = array<i64: 0>} : (tensor<2xi8>) -> tensor<1xi8>
  %e0 = top.constant dense<[-5]> : tensor<1xi8> : tensor<1xi8>
  return %y, %e0 : tensor<1xi8>, tensor<1xi8>
}

func.func @reduce_min_bool() -> (tensor<2x1xi1>, tensor<2x1xi1>) {
  %0 = top.constant dense<[[true, false], [true, true]]> : tensor<2x2xi1> : tensor<2x2xi1>
  %y = top.reduce %0 {kind = 3 : i32, axes = array<i64: 1>} : (tensor<2x2xi1>) -> tensor<2x1xi1>
  %e0 = top.constant dense<[[false], [true]]> : tensor<2x1xi1> : tensor<2x1xi1>
  return %y, %e0 : tensor<2x1xi1>, tensor<2x1xi1>
}

func.func @reduce_max_empty() -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %0 = top.constant dense<> : tensor<2x0xf32> : tensor<2x0xf32>
  %y = top.reduce %0 {kind = 2 : i32, axes = array<i64: 1>} : (tensor<2x0xf32>) -> tensor<2x1xf32>
  %e0 = top.constant dense<0xFF800000> : tensor<2x1xf32> : tensor<2x1xf32>
  return %y, %e0 : tensor<2x1xf32>, tensor<2x1xf32>
}

func.func @reduce_log_sum_exp_large() -> (tensor<1xf32>, tensor<1xf32>) {
  %0 = top.constant dense<1000.0> : tensor<2xf32> : tensor<2xf32>
  %y = top.reduce %0 {kind = 9 : i32, axes = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  %e0 = top.constant dense<[1000.6932]> : tensor<1xf32> : tensor<1xf32>
  return %y, %e0 : tensor<1xf32>, tensor<1xf32>
}

func.func @arg_max() -> (tensor<2x1xi64>, tensor<2x1xi64>) {
  %0 = top.constant dense<[[2.0, 1.0, 2.0], [3.0, 5.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.arg_reduce %0 {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xi64>
  %e0 = top.constant dense<[[0], [1]]> : tensor<2x1xi64> : tensor<2x1xi64>
  return %y, %e0 : tensor<2x1xi64>, tensor<2x1xi64>
}

func.func @arg_max_last() -> (tensor<2xi64>, tensor<2xi64>) {
  %0 = top.constant dense<[[2.0, 1.0, 2.0], [3.0, 5.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.arg_reduce %0 {axis = 1 : i64, keepDims = false, selectLast = true} : (tensor<2x3xf32>) -> tensor<2xi64>
  %e0 = top.constant dense<2> : tensor<2xi64> : tensor<2xi64>
  return %y, %e0 : tensor<2xi64>, tensor<2xi64>
}

func.func @arg_min() -> (tensor<1x3xi64>, tensor<1x3xi64>) {
  %0 = top.constant dense<[[2.0, 1.0, 2.0], [3.0, 5.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.arg_reduce %0 {axis = 0 : i64, min = true} : (tensor<2x3xf32>) -> tensor<1x3xi64>
  %e0 = top.constant dense<0> : tensor<1x3xi64> : tensor<1x3xi64>
  return %y, %e0 : tensor<1x3xi64>, tensor<1x3xi64>
}

func.func @cumsum() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = top.constant dense<[[2.0, 1.0, 2.0], [3.0, 5.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.cumsum %0 {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e0 = top.constant dense<[[2.0, 3.0, 5.0], [3.0, 8.0, 13.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  return %y, %e0 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @cumsum_exclusive_reverse() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = top.constant dense<[[2.0, 1.0, 2.0], [3.0, 5.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.cumsum %0 {axis = 1 : i64, exclusive = true, reverse = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e0 = top.constant dense<[[3.0, 2.0, 0.0], [10.0, 5.0, 0.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  return %y, %e0 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @cumsum_int() -> (tensor<2x1xi64>, tensor<2x1xi64>) {
  %0 = top.constant dense<[[1], [2]]> : tensor<2x1xi64> : tensor<2x1xi64>
  %y = top.cumsum %0 {axis = 0 : i64} : (tensor<2x1xi64>) -> tensor<2x1xi64>
  %e0 = top.constant dense<[[1], [3]]> : tensor<2x1xi64> : tensor<2x1xi64>
  return %y, %e0 : tensor<2x1xi64>, tensor<2x1xi64>
}

// Boxes 0 and 1 share 2 of 6 (not more than a third), 1 and 2 share 3 of 5; 3 has no area; 4 is 0 with swapped corners.
func.func @non_max_suppression() -> (tensor<1x3x5xi64>, tensor<1x3x5xi64>) {
  %b = top.constant dense<[[[0.0, 0.0, 2.0, 2.0], [0.0, 1.0, 2.0, 3.0], [0.0, 1.5, 2.0, 3.5], [0.0, 0.0, 0.0, 2.0], [2.0, 2.0, 0.0, 0.0]]]> : tensor<1x5x4xf32> : tensor<1x5x4xf32>
  %s = top.constant dense<[[[0.5, 0.25, 0.125, 0.5, 0.375], [0.25, 0.375, 0.5, 0.0, 0.25], [0.0, 0.0, 0.0, 0.0, 0.0]]]> : tensor<1x3x5xf32> : tensor<1x3x5xf32>
  %m = top.constant dense<3> : tensor<i64> : tensor<i64>
  %iou = top.constant dense<0.34> : tensor<f32> : tensor<f32>
  %least = top.constant dense<0.0> : tensor<f32> : tensor<f32>
  %y = top.non_max_suppression %b, %s, %m, %iou, %least {k = 5 : i64} : (tensor<1x5x4xf32>, tensor<1x3x5xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x5xi64>
  %e = top.constant dense<[[[0, 3, 1, -1, -1], [2, 0, -1, -1, -1], [-1, -1, -1, -1, -1]]]> : tensor<1x3x5xi64> : tensor<1x3x5xi64>
  return %y, %e : tensor<1x3x5xi64>, tensor<1x3x5xi64>
}

// The same without a score limit and with centres: 1 shares a third with 0; -inf is a valid score, NaN is not.
func.func @non_max_suppression_center() -> (tensor<1x1x3xi64>, tensor<1x1x3xi64>) {
  %b = top.constant dense<[[[1.0, 1.0, 2.0, 2.0], [2.0, 1.0, 2.0, 2.0], [9.0, 9.0, 1.0, 1.0]]]> : tensor<1x3x4xf32> : tensor<1x3x4xf32>
  %s = top.constant dense<[[[0xFF800000, 1.0, 0x7FC00000]]]> : tensor<1x1x3xf32> : tensor<1x1x3xf32>
  %m = top.constant dense<9> : tensor<i64> : tensor<i64>
  %iou = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %least = top.constant dense<0xFF800000> : tensor<f32> : tensor<f32>
  %y = top.non_max_suppression %b, %s, %m, %iou, %least {k = 3 : i64, center = true} : (tensor<1x3x4xf32>, tensor<1x1x3xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x1x3xi64>
  %e = top.constant dense<[[[1, 0, -1]]]> : tensor<1x1x3xi64> : tensor<1x1x3xi64>
  return %y, %e : tensor<1x1x3xi64>, tensor<1x1x3xi64>
}

func.func @topk() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xi64>, tensor<2x2xi64>) {
  %0 = top.constant dense<[[2.0, 1.0, 2.0], [3.0, 5.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y:2 = top.topk %0 {k = 2 : i64, axis = 1 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  %e0 = top.constant dense<[[2.0, 2.0], [5.0, 5.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %e1 = top.constant dense<[[0, 2], [1, 2]]> : tensor<2x2xi64> : tensor<2x2xi64>
  return %y#0, %e0, %y#1, %e1 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xi64>, tensor<2x2xi64>
}

func.func @topk_smallest() -> (tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>) {
  %0 = top.constant dense<[[2.0, 1.0, 2.0], [3.0, 5.0, 5.0]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y:2 = top.topk %0 {k = 1 : i64, axis = 0 : i64, largest = false} : (tensor<2x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xi64>)
  %e0 = top.constant dense<[[2.0, 1.0, 2.0]]> : tensor<1x3xf32> : tensor<1x3xf32>
  %e1 = top.constant dense<0> : tensor<1x3xi64> : tensor<1x3xi64>
  return %y#0, %e0, %y#1, %e1 : tensor<1x3xf32>, tensor<1x3xf32>, tensor<1x3xi64>, tensor<1x3xi64>
}
