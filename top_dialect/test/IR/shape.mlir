// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: @reshape
// CHECK: top.reshape
func.func @reshape(%a: tensor<2x3x4xf32>) {
  %0 = top.reshape %a {shape = array<i64: 6, -1>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  return
}

// CHECK-LABEL: @reshape_run_time
// CHECK: top.reshape
func.func @reshape_run_time(%a: tensor<?x3xf32>, %b: tensor<2xi64>) {
  %0 = top.reshape %a, %b {shape = array<i64: -1, -1>} : (tensor<?x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// CHECK-LABEL: @transpose
// CHECK: top.transpose
func.func @transpose(%a: tensor<2x3x?xf32>) {
  %0 = top.transpose %a {perm = array<i64: 2, 0, 1>} : (tensor<2x3x?xf32>) -> tensor<?x2x3xf32>
  return
}

// CHECK-LABEL: @concat
// CHECK: top.concat
func.func @concat(%a: tensor<2x3xf32>, %b: tensor<2x5xf32>) {
  %0 = top.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  return
}

// CHECK-LABEL: @slice
// CHECK: top.slice
func.func @slice(%a: tensor<9x8xf32>) {
  %0 = top.slice %a {starts = array<i64: 8, 1>, sizes = array<i64: 3, 2>, steps = array<i64: -2, 3>} : (tensor<9x8xf32>) -> tensor<3x2xf32>
  return
}

// CHECK-LABEL: @slice_open_dim
// CHECK: top.slice
func.func @slice_open_dim(%a: tensor<?x8xf32>) {
  %0 = top.slice %a {starts = array<i64: 1, 0>, sizes = array<i64: -1, 8>, steps = array<i64: 1, 1>} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: @pad
// CHECK: top.pad
func.func @pad(%a: tensor<2x3xf32>) {
  %0 = top.pad %a {pads = array<i64: 0, 1, 2, -1>, mode = 0 : i32} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// CHECK-LABEL: @expand
// CHECK: top.expand
func.func @expand(%a: tensor<3x1xf32>) {
  %0 = top.expand %a {shape = array<i64: 2, 1, 4>} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @tile
// CHECK: top.tile
func.func @tile(%a: tensor<2x3xf32>) {
  %0 = top.tile %a {repeats = array<i64: 1, 2>} : (tensor<2x3xf32>) -> tensor<2x6xf32>
  return
}

// CHECK-LABEL: @shape
// CHECK: top.shape
func.func @shape(%a: tensor<2x?x4xf32>) {
  %0 = top.shape %a {start = 1 : i64, end = 3 : i64} : (tensor<2x?x4xf32>) -> tensor<2xi64>
  return
}

// CHECK-LABEL: @range
// CHECK: top.range
func.func @range(%a: tensor<i64>, %b: tensor<i64>, %c: tensor<i64>) {
  %0 = top.range %a, %b, %c : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  return
}

// CHECK-LABEL: @constant_of_shape
// CHECK: top.constant_of_shape
func.func @constant_of_shape(%a: tensor<2xi64>) {
  %0 = top.constant_of_shape %a {value = dense<1.0> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// CHECK-LABEL: @gather
// CHECK: top.gather
func.func @gather(%a: tensor<5x6xf32>, %b: tensor<2x2xi64>) {
  %0 = top.gather %a, %b {axis = 1 : i64} : (tensor<5x6xf32>, tensor<2x2xi64>) -> tensor<5x2x2xf32>
  return
}

// CHECK-LABEL: @gather_elements
// CHECK: top.gather_elements
func.func @gather_elements(%a: tensor<5x6xf32>, %b: tensor<5x2xi64>) {
  %0 = top.gather_elements %a, %b {axis = 1 : i64} : (tensor<5x6xf32>, tensor<5x2xi64>) -> tensor<5x2xf32>
  return
}

// CHECK-LABEL: @gather_nd
// CHECK: top.gather_nd
func.func @gather_nd(%a: tensor<2x5x6xf32>, %b: tensor<2x3x1xi64>) {
  %0 = top.gather_nd %a, %b {batchDims = 1 : i64} : (tensor<2x5x6xf32>, tensor<2x3x1xi64>) -> tensor<2x3x6xf32>
  return
}

// CHECK-LABEL: @scatter_elements
// CHECK: top.scatter_elements
func.func @scatter_elements(%a: tensor<5x6xf32>, %b: tensor<2x6xi64>, %c: tensor<2x6xf32>) {
  %0 = top.scatter_elements %a, %b, %c {axis = 0 : i64} : (tensor<5x6xf32>, tensor<2x6xi64>, tensor<2x6xf32>) -> tensor<5x6xf32>
  return
}

// CHECK-LABEL: @scatter_nd
// CHECK: top.scatter_nd
func.func @scatter_nd(%a: tensor<5x6xf32>, %b: tensor<3x1xi64>, %c: tensor<3x6xf32>) {
  %0 = top.scatter_nd %a, %b, %c {reduction = 1 : i32} : (tensor<5x6xf32>, tensor<3x1xi64>, tensor<3x6xf32>) -> tensor<5x6xf32>
  return
}

// CHECK-LABEL: @one_hot
// CHECK: top.one_hot
func.func @one_hot(%a: tensor<3xi64>, %b: tensor<2xf32>) {
  %0 = top.one_hot %a, %b {depth = 7 : i64, axis = 1 : i64} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x7xf32>
  return
}

// CHECK-LABEL: @non_zero
// CHECK: top.non_zero
func.func @non_zero(%a: tensor<3x4xf32>) {
  %0 = top.non_zero %a : (tensor<3x4xf32>) -> tensor<2x?xi64>
  return
}

// CHECK-LABEL: @trilu
// CHECK: top.trilu
func.func @trilu(%a: tensor<3x4xf32>) {
  %0 = top.trilu %a {k = 1 : i64, upper = false} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return
}

// CHECK-LABEL: @depth_to_space
// CHECK: top.depth_to_space
func.func @depth_to_space(%a: tensor<1x8x2x3xf32>) {
  %0 = top.depth_to_space %a {blockSize = 2 : i64, crd = true} : (tensor<1x8x2x3xf32>) -> tensor<1x2x4x6xf32>
  return
}

// CHECK-LABEL: @space_to_depth
// CHECK: top.space_to_depth
func.func @space_to_depth(%a: tensor<1x2x4x6xf32>) {
  %0 = top.space_to_depth %a {blockSize = 2 : i64} : (tensor<1x2x4x6xf32>) -> tensor<1x8x2x3xf32>
  return
}

// CHECK-LABEL: @resize
// CHECK: top.resize
func.func @resize(%a: tensor<1x2x4x?xf32>) {
  %0 = top.resize %a {sizes = array<i64: 1, 2, 8, -1>, scales = array<f64: 1.0, 1.0, 2.0, 2.0>, mode = 1 : i32, coord = 0 : i32} : (tensor<1x2x4x?xf32>) -> tensor<1x2x8x?xf32>
  return
}

// CHECK-LABEL: @einsum
// CHECK: top.einsum
func.func @einsum(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) {
  %0 = top.einsum %a, %b {equation = "bij,bjk->bik"} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return
}

// CHECK-LABEL: @rnn_lstm
// CHECK: top.rnn
func.func @rnn_lstm(%a: tensor<7x2x3xf32>, %b: tensor<1x20x3xf32>, %c: tensor<1x20x5xf32>, %d: tensor<1x40xf32>) {
  %0:3 = top.rnn %a, %b, %c bias %d {kind = 2 : i32, direction = 0 : i32, hiddenSize = 5 : i64, activations = ["Sigmoid", "Tanh", "Tanh"]} : (tensor<7x2x3xf32>, tensor<1x20x3xf32>, tensor<1x20x5xf32>, tensor<1x40xf32>) -> (tensor<7x1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>)
  return
}
