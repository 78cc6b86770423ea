// SPDX-License-Identifier: Apache-2.0
// RUN: not tessera-opt %s --convert-top-to-device -split-input-file -o /dev/null 2>&1 | FileCheck %s

// All ops that cannot be lowered are reported at once, by their ONNX names.
func.func @static_shape(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: cannot lower 'top.relu' of node 'Relu_0': operand of type tensor<?x4xf32>, allowed: dims that are numbers or expressions of the inputs' sizes (static_shape); fix the sizes of inputs by model_transform --input_shapes, or give their range with --dims
  %y = top.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("Relu_0")
  // CHECK: cannot lower 'top.exp' of node 'Exp_1'
  %z = top.exp %y : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("Exp_1")
  return %z : tensor<?x4xf32>
}

// -----

func.func @data_dependent_shape(%x: tensor<4xf32>) -> tensor<1x?xi64> {
  // CHECK: cannot lower 'top.non_zero' of node 'NonZero_0': result dims computed from values at run time, allowed: dims known at compile time (data_dependent_shape)
  %y = top.non_zero %x : (tensor<4xf32>) -> tensor<1x?xi64> loc("NonZero_0")
  return %y : tensor<1x?xi64>
}

// -----

func.func @control_flow(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: cannot lower 'top.if' of node 'If_0': a region decided at run time, allowed: no regions (control_flow)
  %y = top.if %c {
    %r = top.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    top.yield %r : tensor<4xf32>
  } else {
    top.yield %x : tensor<4xf32>
  } : (tensor<i1>) -> tensor<4xf32> loc("If_0")
  return %y : tensor<4xf32>
}

// -----

!x = tensor<?x3x?x8xf32, #top.dims<[batch[1:8], 3, h[4:8], 8]>>
!y = tensor<?x3x?x8xf32, #top.dims<[batch[1:8], 3, 2*h[4:8], 8]>>
func.func @symbolic_size(%x: !x, %p: !x) -> !y {
  // CHECK: cannot lower 'top.resize' of node 'Resize_0': dim 2 of h is resized to 2*h in mode cubic, allowed: numbers, mode linear without antialias, exclude_outside and regions, or elements repeated up to 64 times (mode nearest, an integer as scale) (symbolic_size); fix this size with model_transform --input_shapes, or give --dims a single value
  %y = top.resize %x {mode = 2 : i32, coord = 3 : i32, round = 2 : i32, scales = array<f64: 1.0, 1.0, 2.0, 1.0>, sizes = array<i64: -1, 3, -1, 8>, top.dims = #top.dims<[batch[1:8], 3, 2*h[4:8], 8]>} : (!x) -> !y loc("Resize_0")
  return %y : !y
}

// -----

!x = tensor<?xi32, #top.dims<[n[0:8]]>>
func.func @empty_mean(%x: !x) -> tensor<1xi32> {
  // CHECK: cannot lower 'top.reduce' of node 'Mean_0': the mean of integers along dim 0 of n, allowed: dims of at least one element (symbolic_size)
  %y = top.reduce %x {axes = array<i64: 0>, keepDims = true, kind = 1 : i32} : (!x) -> tensor<1xi32> loc("Mean_0")
  return %y : tensor<1xi32>
}
