// SPDX-License-Identifier: Apache-2.0
// Matmuls of quantised rows and blocks of weights: every function returns pairs (actual, expected). The expected numbers
// come from a program in numpy that follows docs/numerics.md. The last block has one entry.

func.func @block_matmul() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %x = top.constant dense<[[1.0, -0.3, 0.25, 0.1, 7.0], [0.0, 0.0, 0.5, -0.5, -2.0]]> : tensor<2x5xf32> : tensor<2x5xf32>
  %w = top.constant dense<[[1, 15], [2, 0], [3, 7], [-128, 127], [5, -8]]> : tensor<5x2xi8> : tensor<5x2xi8>
  %s = top.constant dense<[[0.5, 0.25], [1.0, -2.0], [0.125, 0.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %y = top.block_matmul %x, %w, %s {block = 2 : i64} : (tensor<2x5xf32>, tensor<5x2xi8>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %e = top.constant dense<"0x94C9F0C00000CAC1008080420000F042"> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @block_matmul_mins() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %x = top.constant dense<[[1.0, -0.3, 0.25, 0.1, 7.0], [0.0, 0.0, 0.5, -0.5, -2.0]]> : tensor<2x5xf32> : tensor<2x5xf32>
  %w = top.constant dense<[[1, 15], [2, 0], [3, 7], [-128, 127], [5, -8]]> : tensor<5x2xi8> : tensor<5x2xi8>
  %s = top.constant dense<[[0.5, 0.25], [1.0, -2.0], [0.125, 0.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %m = top.constant dense<[[-1.0, 0.0], [0.5, -0.75], [0.0, 3.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %y = top.block_matmul %x, %w, %s, %m {block = 2 : i64} : (tensor<2x5xf32>, tensor<5x2xi8>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  %e = top.constant dense<"0x9BCD00C1D06890C0008080420000E442"> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e : tensor<2x2xf32>, tensor<2x2xf32>
}
