// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: @conv_strided
// CHECK: top.conv
func.func @conv_strided(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3x3xf32>, %c: tensor<8xf32>) {
  %0 = top.conv %a, %b, %c {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<1x8x5x5xf32>
  return
}

// CHECK-LABEL: @conv_depthwise
// CHECK: top.conv
func.func @conv_depthwise(%a: tensor<1x8x5x5xf32>, %b: tensor<8x1x3x3xf32>) {
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 8 : i64, relu = true} : (tensor<1x8x5x5xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x3x3xf32>
  return
}

// CHECK-LABEL: @conv_1d
// CHECK: top.conv
func.func @conv_1d(%a: tensor<1x3x9xf32>, %b: tensor<8x3x3xf32>) {
  %0 = top.conv %a, %b {strides = array<i64: 1>, pads = array<i64: 0, 2>, dilations = array<i64: 2>} : (tensor<1x3x9xf32>, tensor<8x3x3xf32>) -> tensor<1x8x7xf32>
  return
}

// CHECK-LABEL: @conv_open_dims
// CHECK: top.conv
func.func @conv_open_dims(%a: tensor<?x3x?x9xf32>, %b: tensor<8x3x3x3xf32>) {
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x3x?x9xf32>, tensor<8x3x3x3xf32>) -> tensor<?x8x?x5xf32>
  return
}

// CHECK-LABEL: @conv_transpose
// CHECK: top.conv_transpose
func.func @conv_transpose(%a: tensor<1x4x3x3xf32>, %b: tensor<4x2x3x3xf32>, %c: tensor<4xf32>) {
  %0 = top.conv_transpose %a, %b, %c {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, outputPadding = array<i64: 1, 0>, groups = 2 : i64} : (tensor<1x4x3x3xf32>, tensor<4x2x3x3xf32>, tensor<4xf32>) -> tensor<1x4x6x5xf32>
  return
}

// CHECK-LABEL: @matmul_batch
// CHECK: top.matmul
func.func @matmul_batch(%a: tensor<5x1x2x3xf32>, %b: tensor<4x3x7xf32>, %c: tensor<7xf32>) {
  %0 = top.matmul %a, %b, %c : (tensor<5x1x2x3xf32>, tensor<4x3x7xf32>, tensor<7xf32>) -> tensor<5x4x2x7xf32>
  return
}

// CHECK-LABEL: @matmul_transposed
// CHECK: top.matmul
func.func @matmul_transposed(%a: tensor<3x2xf32>, %b: tensor<7x3xf32>) {
  %0 = top.matmul %a, %b {transA = true, transB = true} : (tensor<3x2xf32>, tensor<7x3xf32>) -> tensor<2x7xf32>
  return
}

// CHECK-LABEL: @max_pool
// CHECK: top.max_pool
func.func @max_pool(%a: tensor<1x3x8x8xf32>) {
  %0 = top.max_pool %a {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, ceilMode = true} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return
}

// CHECK-LABEL: @avg_pool
// CHECK: top.avg_pool
func.func @avg_pool(%a: tensor<1x3x8x8xf32>) {
  %0 = top.avg_pool %a {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, countIncludePad = true} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return
}
