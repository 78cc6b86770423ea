// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: @reduce_keep
// CHECK: top.reduce
func.func @reduce_keep(%a: tensor<2x3x4xf32>) {
  %0 = top.reduce %a {kind = 1 : i32, axes = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<1x3x1xf32>
  return
}

// CHECK-LABEL: @reduce_drop
// CHECK: top.reduce
func.func @reduce_drop(%a: tensor<2x?x4xf32>) {
  %0 = top.reduce %a {kind = 0 : i32, axes = array<i64: 2>, keepDims = false} : (tensor<2x?x4xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @arg_reduce
// CHECK: top.arg_reduce
func.func @arg_reduce(%a: tensor<2x3xf32>) {
  %0 = top.arg_reduce %a {axis = 1 : i64, keepDims = false} : (tensor<2x3xf32>) -> tensor<2xi64>
  return
}

// CHECK-LABEL: @cumsum
// CHECK: top.cumsum
func.func @cumsum(%a: tensor<2x3xf32>) {
  %0 = top.cumsum %a {axis = 1 : i64, reverse = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// CHECK-LABEL: @non_max_suppression
// CHECK: top.non_max_suppression
func.func @non_max_suppression(%b: tensor<2x9x4xf32>, %s: tensor<2x3x9xf32>, %m: tensor<i64>, %t: tensor<1xf32>) -> tensor<2x3x5xi64> {
  %0 = top.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64, center = true}
    : (tensor<2x9x4xf32>, tensor<2x3x9xf32>, tensor<i64>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x3x5xi64>
  return %0 : tensor<2x3x5xi64>
}

// CHECK-LABEL: @topk
// CHECK: top.topk
func.func @topk(%a: tensor<2x9xf32>) {
  %0:2 = top.topk %a {k = 3 : i64, axis = 1 : i64} : (tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return
}

// CHECK-LABEL: @softmax
// CHECK: top.softmax
func.func @softmax(%a: tensor<2x9xf32>) {
  %0 = top.softmax %a {axis = 1 : i64, log = true} : (tensor<2x9xf32>) -> tensor<2x9xf32>
  return
}

// CHECK-LABEL: @batch_norm
// CHECK: top.batch_norm
func.func @batch_norm(%a: tensor<1x3x4x4xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<3xf32>) {
  %0 = top.batch_norm %a, %b, %c, %d, %e {epsilon = 1.0e-5 : f64} : (tensor<1x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4x4xf32>
  return
}

// CHECK-LABEL: @layer_norm
// CHECK: top.layer_norm
func.func @layer_norm(%a: tensor<2x5x8xf32>, %b: tensor<8xf32>) {
  %0 = top.layer_norm %a scale %b {axis = 2 : i64, epsilon = 1.0e-5 : f64, rms = true} : (tensor<2x5x8xf32>, tensor<8xf32>) -> tensor<2x5x8xf32>
  return
}

// CHECK-LABEL: @group_norm
// CHECK: top.group_norm
func.func @group_norm(%a: tensor<2x6x4xf32>, %b: tensor<6xf32>, %c: tensor<6xf32>) {
  %0 = top.group_norm %a, %b, %c {groups = 3 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x4xf32>
  return
}

// CHECK-LABEL: @lrn
// CHECK: top.lrn
func.func @lrn(%a: tensor<1x6x4x4xf32>) {
  %0 = top.lrn %a {size = 5 : i64, alpha = 1.0e-4 : f64, beta = 0.75 : f64, bias = 1.0 : f64} : (tensor<1x6x4x4xf32>) -> tensor<1x6x4x4xf32>
  return
}

// CHECK-LABEL: @attention
// CHECK: top.attention
func.func @attention(%a: tensor<2x8x5x16xf32>, %b: tensor<2x1x7x16xf32>, %c: tensor<2x1x7x32xf32>, %d: tensor<5x7xf32>) {
  %0 = top.attention %a, %b, %c, %d {scale = 0.25 : f64} : (tensor<2x8x5x16xf32>, tensor<2x1x7x16xf32>, tensor<2x1x7x32xf32>, tensor<5x7xf32>) -> tensor<2x8x5x32xf32>
  return
}

// CHECK-LABEL: @rope
// CHECK: top.rope
func.func @rope(%a: tensor<2x8x5x16xf32>, %b: tensor<5x8xf32>, %c: tensor<5x8xf32>) {
  %0 = top.rope %a, %b, %c {interleaved = true} : (tensor<2x8x5x16xf32>, tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<2x8x5x16xf32>
  return
}
