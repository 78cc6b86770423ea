// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, one-hot, einsum: every function returns pairs (actual, expected).

func.func @gather_rows() -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %1 = top.constant dense<[[0, -1]]> : tensor<1x2xi64> : tensor<1x2xi64>
  %y = top.gather %0, %1 {axis = 0 : i64} : (tensor<3x4xf32>, tensor<1x2xi64>) -> tensor<1x2x4xf32>
  %e0 = top.constant dense<[[[0.0, 1.0, 2.0, 3.0], [8.0, 9.0, 10.0, 11.0]]]> : tensor<1x2x4xf32> : tensor<1x2x4xf32>
  return %y, %e0 : tensor<1x2x4xf32>, tensor<1x2x4xf32>
}

func.func @gather_scalar() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %1 = top.constant dense<1> : tensor<i32> : tensor<i32>
  %y = top.gather %0, %1 {axis = 1 : i64} : (tensor<3x4xf32>, tensor<i32>) -> tensor<3xf32>
  %e0 = top.constant dense<[1.0, 5.0, 9.0]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @gather_elements() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %1 = top.constant dense<[[0, -1], [1, 1]]> : tensor<2x2xi64> : tensor<2x2xi64>
  %y = top.gather_elements %0, %1 {axis = 1 : i64} : (tensor<3x4xf32>, tensor<2x2xi64>) -> tensor<2x2xf32>
  %e0 = top.constant dense<[[0.0, 3.0], [5.0, 5.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e0 : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @gather_nd() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %1 = top.constant dense<[[0, 1], [2, -1]]> : tensor<2x2xi64> : tensor<2x2xi64>
  %y = top.gather_nd %0, %1 : (tensor<3x4xf32>, tensor<2x2xi64>) -> tensor<2xf32>
  %e0 = top.constant dense<[1.0, 11.0]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

func.func @gather_nd_slices() -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %1 = top.constant dense<[[2]]> : tensor<1x1xi64> : tensor<1x1xi64>
  %y = top.gather_nd %0, %1 : (tensor<3x4xf32>, tensor<1x1xi64>) -> tensor<1x4xf32>
  %e0 = top.constant dense<[[8.0, 9.0, 10.0, 11.0]]> : tensor<1x4xf32> : tensor<1x4xf32>
  return %y, %e0 : tensor<1x4xf32>, tensor<1x4xf32>
}

func.func @gather_nd_batched() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = top.constant dense<[[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [6.0, 7.0]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %1 = top.constant dense<[[1], [0]]> : tensor<2x1xi64> : tensor<2x1xi64>
  %y = top.gather_nd %0, %1 {batchDims = 1 : i64} : (tensor<2x2x2xf32>, tensor<2x1xi64>) -> tensor<2x2xf32>
  %e0 = top.constant dense<[[2.0, 3.0], [4.0, 5.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e0 : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @scatter_elements() -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %1 = top.constant dense<[[1], [-1]]> : tensor<2x1xi64> : tensor<2x1xi64>
  %2 = top.constant dense<[[50.0], [60.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %y = top.scatter_elements %0, %1, %2 {axis = 1 : i64} : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<3x4xf32>
  %e0 = top.constant dense<[[0.0, 50.0, 2.0, 3.0], [4.0, 5.0, 6.0, 60.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  return %y, %e0 : tensor<3x4xf32>, tensor<3x4xf32>
}

func.func @scatter_elements_add() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %1 = top.constant dense<0> : tensor<2xi64> : tensor<2xi64>
  %2 = top.constant dense<[10.0, 20.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.scatter_elements %0, %1, %2 {axis = 0 : i64, reduction = 1 : i32} : (tensor<2xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2xf32>
  %e0 = top.constant dense<[31.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

func.func @scatter_elements_max() -> (tensor<2xi32>, tensor<2xi32>) {
  %0 = top.constant dense<[5, 2]> : tensor<2xi32> : tensor<2xi32>
  %1 = top.constant dense<[0, 1]> : tensor<2xi64> : tensor<2xi64>
  %2 = top.constant dense<[3, 9]> : tensor<2xi32> : tensor<2xi32>
  %y = top.scatter_elements %0, %1, %2 {axis = 0 : i64, reduction = 4 : i32} : (tensor<2xi32>, tensor<2xi64>, tensor<2xi32>) -> tensor<2xi32>
  %e0 = top.constant dense<[5, 9]> : tensor<2xi32> : tensor<2xi32>
  return %y, %e0 : tensor<2xi32>, tensor<2xi32>
}

func.func @scatter_nd() -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %1 = top.constant dense<[[1]]> : tensor<1x1xi64> : tensor<1x1xi64>
  %2 = top.constant dense<9.0> : tensor<1x4xf32> : tensor<1x4xf32>
  %y = top.scatter_nd %0, %1, %2 : (tensor<3x4xf32>, tensor<1x1xi64>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %e0 = top.constant dense<[[0.0, 1.0, 2.0, 3.0], [9.0, 9.0, 9.0, 9.0], [8.0, 9.0, 10.0, 11.0]]> : tensor<3x4xf32> : tensor<3x4xf32>
  return %y, %e0 : tensor<3x4xf32>, tensor<3x4xf32>
}

func.func @scatter_nd_mul() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : tensor<3xf32>
  %1 = top.constant dense<2> : tensor<2x1xi64> : tensor<2x1xi64>
  %2 = top.constant dense<[2.0, 5.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.scatter_nd %0, %1, %2 {reduction = 2 : i32} : (tensor<3xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[1.0, 2.0, 30.0]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @scatter_nd_min() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : tensor<3xf32>
  %1 = top.constant dense<[[2], [0]]> : tensor<2x1xi64> : tensor<2x1xi64>
  %2 = top.constant dense<[2.0, 5.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.scatter_nd %0, %1, %2 {reduction = 3 : i32} : (tensor<3xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[1.0, 2.0, 2.0]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @one_hot() -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  %0 = top.constant dense<[0, -1, 5]> : tensor<3xi64> : tensor<3xi64>
  %1 = top.constant dense<[0.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.one_hot %0, %1 {depth = 3 : i64, axis = 1 : i64} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x3xf32>
  %e0 = top.constant dense<[[2.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]> : tensor<3x3xf32> : tensor<3x3xf32>
  return %y, %e0 : tensor<3x3xf32>, tensor<3x3xf32>
}

func.func @one_hot_first() -> (tensor<2x2xi32>, tensor<2x2xi32>) {
  %0 = top.constant dense<[1, 0]> : tensor<2xi32> : tensor<2xi32>
  %1 = top.constant dense<[-1, 1]> : tensor<2xi32> : tensor<2xi32>
  %y = top.one_hot %0, %1 {depth = 2 : i64, axis = 0 : i64} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  %e0 = top.constant dense<[[-1, 1], [1, -1]]> : tensor<2x2xi32> : tensor<2x2xi32>
  return %y, %e0 : tensor<2x2xi32>, tensor<2x2xi32>
}

func.func @non_zero() -> (tensor<2x?xi64>, tensor<2x3xi64>) {
  %x = top.constant dense<[[1.0, 0.0], [-2.0, 0.5]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.non_zero %x : (tensor<2x2xf32>) -> tensor<2x?xi64>
  %e = top.constant dense<[[0, 1, 1], [0, 0, 1]]> : tensor<2x3xi64> : tensor<2x3xi64>
  return %y, %e : tensor<2x?xi64>, tensor<2x3xi64>
}

func.func @einsum_matmul() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = top.constant dense<[[1.5, 1.0, 0.25], [-1.0, 1.25, -0.75]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %1 = top.constant dense<[[-2.0, -1.75, 1.5, 0.25], [-1.0, 0.0, 1.25, 1.0], [1.5, 0.75, 0.0, 0.5]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %y = top.einsum %0, %1 {equation = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %e0 = top.constant dense<[[-3.625, -2.4375, 3.5, 1.5], [-0.375, 1.1875, 0.0625, 0.625]]> : tensor<2x4xf32> : tensor<2x4xf32>
  return %y, %e0 : tensor<2x4xf32>, tensor<2x4xf32>
}

func.func @einsum_diagonal() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[[-0.75, 1.75, 0.5], [1.5, 0.25, 0.5], [1.25, 1.25, -1.75]]> : tensor<3x3xf32> : tensor<3x3xf32>
  %y = top.einsum %0 {equation = "ii->i"} : (tensor<3x3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[-0.75, 0.25, -1.75]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @einsum_three() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[[1.5, 1.0, 0.25], [-1.0, 1.25, -0.75]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %1 = top.constant dense<[[-2.0, -1.75, 1.5, 0.25], [-1.0, 0.0, 1.25, 1.0], [1.5, 0.75, 0.0, 0.5]]> : tensor<3x4xf32> : tensor<3x4xf32>
  %2 = top.constant dense<[[1.5, 1.0, 0.25], [-1.0, 1.25, -0.75]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %y = top.einsum %0, %1, %2 {equation = "ij,jk,ij->k"} : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x3xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[-8.125, -5.21875, 8.078125, 3.6875]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}
