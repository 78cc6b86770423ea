// RUN: tessera-opt %s --top-cse --split-input-file | FileCheck %s --check-prefix=CSE
// RUN: tessera-opt %s --top-dce --split-input-file | FileCheck %s --check-prefix=DCE
// SPDX-License-Identifier: Apache-2.0

// Ops that differ only in their names are merged. The first one takes over the name if it does not have one.
// CSE-LABEL: @equal
// CSE-NEXT: %[[C:.*]] = top.constant
// CSE-NEXT: %[[A:.*]] = top.add %arg0, %[[C]] {top.outputs = ["b"]}
// CSE-NEXT: %[[M:.*]] = top.mul %[[A]], %[[A]]
// CSE-NEXT: %[[S:.*]] = top.sub %arg0, %[[C]]
// CSE-NEXT: return %[[M]], %[[S]]
func.func @equal(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %d = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %a = top.add %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = top.add %x, %d {top.outputs = ["b"]} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %m = top.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = top.sub %x, %d : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %m, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// Ops with different attributes are not merged, nor are ops in different branches.
// CSE-LABEL: @different
// CSE: top.softmax
// CSE: top.softmax
// CSE: top.if
// CSE: top.relu
// CSE: else
// CSE: top.relu
func.func @different(%x: tensor<4x4xf32>, %cond: tensor<i1>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = top.softmax %x {axis = 0} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = top.softmax %x {axis = 1} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = top.if %cond {
    %r = top.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    top.yield %r : tensor<4x4xf32>
  } else {
    %r = top.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = top.neg %r : (tensor<4x4xf32>) -> tensor<4x4xf32>
    top.yield %n : tensor<4x4xf32>
  } : (tensor<i1>) -> tensor<4x4xf32>
  return %a, %b, %y : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Dead chains are erased, unused inputs stay. The first result of the if has no user, so its branch becomes empty.
// DCE-LABEL: @dead(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<i1>)
// DCE-NEXT: %[[Y:.*]] = top.if %arg2 {
// DCE-NEXT: %[[N:.*]] = top.neg %arg0
// DCE-NEXT: top.yield %[[N]] : tensor<4xf32>
// DCE-NEXT: } else {
// DCE-NEXT: top.yield %arg0 : tensor<4xf32>
// DCE-NEXT: } {top.outputs = ["kept"]} : (tensor<i1>) -> tensor<4xf32>
// DCE-NEXT: return %[[Y]]
func.func @dead(%x: tensor<4xf32>, %unused: tensor<4xf32>, %cond: tensor<i1>) -> tensor<4xf32> {
  %a = top.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = top.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %y:2 = top.if %cond {
    %e = top.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %n = top.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    top.yield %e, %n : tensor<4xf32>, tensor<4xf32>
  } else {
    top.yield %x, %x : tensor<4xf32>, tensor<4xf32>
  } {top.outputs = ["dead", "kept"]} : (tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %y#1 : tensor<4xf32>
}

// The positions of two slices are different sizes.
// CSE-LABEL: @open_positions
// CSE: top.slice
// CSE-SAME: top.start_dims = #top.dims<[n[0:7]]>
// CSE: top.slice
// CSE-SAME: top.start_dims = #top.dims<[m[0:7]]>
func.func @open_positions(%t: tensor<8xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %0 = top.slice %t {starts = array<i64: -1>, sizes = array<i64: 1>, steps = array<i64: 1>, top.start_dims = #top.dims<[n[0:7]]>} : (tensor<8xf32>) -> tensor<1xf32>
  %1 = top.slice %t {starts = array<i64: -1>, sizes = array<i64: 1>, steps = array<i64: 1>, top.start_dims = #top.dims<[m[0:7]]>} : (tensor<8xf32>) -> tensor<1xf32>
  return %0, %1 : tensor<1xf32>, tensor<1xf32>
}
