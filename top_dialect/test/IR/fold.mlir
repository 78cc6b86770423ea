// RUN: tessera-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @identities
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
func.func @identities(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = top.constant dense<0.0> : tensor<f32> : tensor<f32>
  %one = top.constant dense<1.0> : tensor<2x3xf32> : tensor<2x3xf32>
  %0 = top.add %x, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = top.mul %one, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = top.sub %1, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = top.div %2, %one : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = top.cast %3 {to = f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = top.reshape %4 {shape = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = top.transpose %5 {perm = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = top.concat %6 {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %8 = top.slice %7 {starts = array<i64: 0, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: return %[[X]]
  return %8 : tensor<2x3xf32>
}

// An addition of 0 that broadcasts its other operand is not an identity.
// CHECK-LABEL: @broadcasting
func.func @broadcasting(%x: tensor<3xf32>) -> tensor<2x3xf32> {
  %zero = top.constant dense<0.0> : tensor<2x3xf32> : tensor<2x3xf32>
  // CHECK: top.add
  %0 = top.add %x, %zero : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
