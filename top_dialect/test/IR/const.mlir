// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: @constants
func.func @constants() -> (tensor<2xi1>, tensor<300xf32>) {
  // CHECK: top.constant dense<[true, false]> : tensor<2xi1>
  %0 = top.constant dense<[true, false]> : tensor<2xi1> : tensor<2xi1>
  // CHECK: top.weight "conv.w" : tensor<300xf32>
  %1 = top.weight "conv.w" : tensor<300xf32>
  return %0, %1 : tensor<2xi1>, tensor<300xf32>
}

// A dim in which the branches differ becomes `?`.
// CHECK-LABEL: @branches
func.func @branches(%cond: tensor<i1>, %a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<?xf32> {
  // CHECK: top.if
  %0 = top.if %cond {
    top.yield %a : tensor<2xf32>
  } else {
    top.yield %b : tensor<3xf32>
  } : (tensor<i1>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: @loop
func.func @loop(%trips: tensor<i64>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>) {
  // CHECK: top.loop trip
  %0:2 = top.loop trip %trips init(%x) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %carried: tensor<4xf32>):
    %next = top.exp %carried : (tensor<4xf32>) -> tensor<4xf32>
    top.yield %c, %next, %next : tensor<i1>, tensor<4xf32>, tensor<4xf32>
  } : (tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<?x4xf32>
}
