// RUN: tessera-opt %s --top-outline-regions --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Captured values are arguments with their names; a value that a region only returns needs no function; constants are
// cloned.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[A:.*]] = call @main_0(%arg1) {top.outputs = ["a"]}
// CHECK-NEXT: %[[R:.*]] = top.if %arg0 {
// CHECK-NEXT: %[[T:.*]] = func.call @if.then(%[[A]], %arg1)
// CHECK-NEXT: top.yield %[[T]]
// CHECK-NEXT: } else {
// CHECK-NEXT: top.yield %[[A]]
// CHECK: %[[Y:.*]] = call @main_1(%[[R]], %[[A]])
// CHECK-NEXT: return %[[Y]]
// CHECK: func.func private @main_0(%arg0: tensor<4xf32> {top.name = "x"})
// CHECK: func.func private @if.then(%arg0: tensor<4xf32> {top.name = "a"}, %arg1: tensor<4xf32> {top.name = "x"})
// CHECK-NEXT: %[[C:.*]] = top.constant
// CHECK-NEXT: %[[S:.*]] = top.add %arg0, %[[C]]
// CHECK-NEXT: %[[M:.*]] = top.mul %[[S]], %arg1
// CHECK-NEXT: return %[[M]]
// CHECK: func.func private @main_1
func.func @main(%c: tensor<i1>, %x: tensor<4xf32> {top.name = "x"}) -> tensor<4xf32> {
  %k = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %a = top.relu %x {top.outputs = ["a"]} : (tensor<4xf32>) -> tensor<4xf32>
  %r = top.if %c {
    %s = top.add %a, %k : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %m = top.mul %s, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    top.yield %m : tensor<4xf32>
  } else {
    top.yield %a : tensor<4xf32>
  } : (tensor<i1>) -> tensor<4xf32>
  %y = top.sub %r, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// An if within a loop splits the body; carried values are arguments of the functions.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: top.loop trip %arg0 init(%arg1) {
// CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i64>, %[[C:.*]]: tensor<i1>, %[[V:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[P:.*]] = func.call @loop.body(%[[I]], %arg0)
// CHECK-NEXT: %[[R:.*]] = top.if %[[P]] {
// CHECK-NEXT: top.yield %[[V]]
// CHECK: } else {
// CHECK-NEXT: func.call @if.else(%[[V]])
// CHECK: top.yield %[[C]], %[[R]]
func.func @main(%n: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %unused = top.constant dense<0> : tensor<1xi64> : tensor<1xi64>
  %y = top.loop trip %n init(%x) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<4xf32>):
    %p = top.compare %i, %n {kind = 0 : i32} : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %r = top.if %p {
      top.yield %v : tensor<4xf32>
    } else {
      %t = top.relu %v : (tensor<4xf32>) -> tensor<4xf32>
      top.yield %t : tensor<4xf32>
    } : (tensor<i1>) -> tensor<4xf32>
    top.yield %c, %r : tensor<i1>, tensor<4xf32>
  } : (tensor<i64>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @plain
// CHECK-NEXT: top.relu
// CHECK-NOT: func.func private
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = top.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A stacked value becomes a carried tensor of zeros in which each pass writes a slice.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[N:.*]] = top.constant dense<9>
// CHECK-NEXT: %[[Z:.*]] = call @main_0()
// CHECK-NEXT: %[[L:.*]]:2 = top.loop trip %[[N]] init(%arg0, %[[Z]]) {
// CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i64>, %[[C:.*]]: tensor<i1>, %[[V:.*]]: tensor<4xf32>, %[[S:.*]]: tensor<9x4xf32>):
// CHECK-NEXT: %[[P:.*]]:2 = func.call @loop.body(%[[V]], %[[I]], %[[S]])
// CHECK-NEXT: top.yield %[[C]], %[[P]]#0, %[[P]]#1
// CHECK: func.func private @loop.body
// CHECK: top.scatter_nd %arg2
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<9x4xf32>) {
  %n = top.constant dense<9> : tensor<i64> : tensor<i64>
  %y:2 = top.loop trip %n init(%x) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<4xf32>):
    %r = top.relu %v : (tensor<4xf32>) -> tensor<4xf32>
    top.yield %c, %r, %r : tensor<i1>, tensor<4xf32>, tensor<4xf32>
  } : (tensor<i64>, tensor<4xf32>) -> (tensor<4xf32>, tensor<9x4xf32>)
  return %y#0, %y#1 : tensor<4xf32>, tensor<9x4xf32>
}
