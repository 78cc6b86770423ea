// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @reshape_c1(%a: tensor<2x3xf32>) {
  // expected-error @below {{cannot reshape the 6 elements of 2x3 to 4x-1 (C1)}}
  %0 = top.reshape %a {shape = array<i64: 4, -1>} : (tensor<2x3xf32>) -> tensor<4x1xf32>
  return
}

// -----

func.func @reshape_c2(%a: tensor<2x3xf32>) {
  // expected-error @below {{at most one -1 if there is no dynShape (C2)}}
  %0 = top.reshape %a {shape = array<i64: -1, -1>} : (tensor<2x3xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @transpose_c1(%a: tensor<2x3xf32>) {
  // expected-error @below {{is not a permutation of rank 2 (C1)}}
  %0 = top.transpose %a {perm = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @concat_c1(%a: tensor<2x3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.concat %a {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat_c2(%a: tensor<2x3xf32>, %b: tensor<3x3xf32>) {
  // expected-error @below {{must agree in all dims but dim 1 (C2)}}
  %0 = top.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return
}

// -----

func.func @concat_c3() {
  // expected-error @below {{needs at least one operand (C3)}}
  %0 = top.concat {axis = 0 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @concat_c4(%a: tensor<2x3xf32>, %b: tensor<2x3xf16>) {
  // expected-error @below {{(C4)}}
  %0 = top.concat %a, %b {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf16>) -> tensor<2x6xf32>
  return
}

// -----

func.func @slice_c1(%a: tensor<8xf32>) {
  // expected-error @below {{start 6, size 3, step 1 leaves dim 0 of size 8 (C1)}}
  %0 = top.slice %a {starts = array<i64: 6>, sizes = array<i64: 3>, steps = array<i64: 1>} : (tensor<8xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @slice_c2(%a: tensor<8xf32>) {
  // expected-error @below {{step of dim 0 is 0 (C2)}}
  %0 = top.slice %a {starts = array<i64: 0>, sizes = array<i64: 3>, steps = array<i64: 0>} : (tensor<8xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @slice_c3(%a: tensor<8xf32>) {
  // expected-error @below {{starts has 2 entries, must have 1 (C3)}}
  %0 = top.slice %a {starts = array<i64: 0, 0>, sizes = array<i64: 3>, steps = array<i64: 1>} : (tensor<8xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @pad_c1(%a: tensor<2x3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.pad %a {pads = array<i64: 0, 1>, mode = 0 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_c2_negative(%a: tensor<3xf32>) {
  // expected-error @below {{leave dim 0 of size 3 without a valid size (C2)}}
  %0 = top.pad %a {pads = array<i64: -2, -2>, mode = 0 : i32} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @pad_c2_reflect(%a: tensor<3xf32>) {
  // expected-error @below {{reflect pads 3 and 0 must be below the size 3 of dim 0 (C2)}}
  %0 = top.pad %a {pads = array<i64: 3, 0>, mode = 1 : i32} : (tensor<3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @expand_c1(%a: tensor<3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.expand %a {shape = array<i64: 4>} : (tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @expand_c2(%a: tensor<3xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.expand %a {shape = array<i64: -1>} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @tile_c1(%a: tensor<3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.tile %a {repeats = array<i64: 1, 2>} : (tensor<3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @shape_c1(%a: tensor<3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.shape %a {start = 0 : i64, end = 2 : i64} : (tensor<3xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @range_c1(%a: tensor<i64>, %b: tensor<f32>, %c: tensor<i64>) {
  // expected-error @below {{(C1)}}
  %0 = top.range %a, %b, %c : (tensor<i64>, tensor<f32>, tensor<i64>) -> tensor<?xi64>
  return
}

// -----

func.func @range_c2(%a: tensor<2xi64>, %b: tensor<i64>, %c: tensor<i64>) {
  // expected-error @below {{(C2)}}
  %0 = top.range %a, %b, %c : (tensor<2xi64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  return
}

// -----

func.func @constant_of_shape_c1(%a: tensor<2xi64>) {
  // expected-error @below {{(C1)}}
  %0 = top.constant_of_shape %a {value = dense<[1.0, 2.0]> : tensor<2xf32>} : (tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @constant_of_shape_c3(%a: tensor<2xf32>) {
  // expected-error @below {{(C3)}}
  %0 = top.constant_of_shape %a {value = dense<1.0> : tensor<1xf32>} : (tensor<2xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @gather_c1(%a: tensor<5xf32>, %b: tensor<2xi64>) {
  // expected-error @below {{(C1)}}
  %0 = top.gather %a, %b {axis = 1 : i64} : (tensor<5xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_c2(%a: tensor<5xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{indices have element type 'f32', allowed are i32 and i64 (C2)}}
  %0 = top.gather %a, %b {axis = 0 : i64} : (tensor<5xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_c1(%a: tensor<5xf32>, %b: tensor<2xi64>) {
  // expected-error @below {{(C1)}}
  %0 = top.gather_elements %a, %b {axis = 1 : i64} : (tensor<5xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_c2(%a: tensor<5xf32>, %b: tensor<2x2xi64>) {
  // expected-error @below {{(C2)}}
  %0 = top.gather_elements %a, %b {axis = 0 : i64} : (tensor<5xf32>, tensor<2x2xi64>) -> tensor<2x2xf32>
  return
}

// -----

func.func @gather_nd_c1(%a: tensor<5xf32>, %b: tensor<2x1xi64>) {
  // expected-error @below {{(C1)}}
  %0 = top.gather_nd %a, %b {batchDims = 1 : i64} : (tensor<5xf32>, tensor<2x1xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_nd_c2(%a: tensor<5xf32>, %b: tensor<2x1xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.gather_nd %a, %b : (tensor<5xf32>, tensor<2x1xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_nd_c3(%a: tensor<5xf32>, %b: tensor<2x2xi64>) {
  // expected-error @below {{index tuples have 2 entries, allowed are 1 to 1 (C3)}}
  %0 = top.gather_nd %a, %b : (tensor<5xf32>, tensor<2x2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_elements_c1(%a: tensor<5xf32>, %b: tensor<2xi64>, %c: tensor<2xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.scatter_elements %a, %b, %c {axis = 1 : i64} : (tensor<5xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scatter_elements_c2(%a: tensor<5xf32>, %b: tensor<2xi64>, %c: tensor<3xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.scatter_elements %a, %b, %c {axis = 0 : i64} : (tensor<5xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scatter_elements_c3(%a: tensor<5xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>) {
  // expected-error @below {{(C3)}}
  %0 = top.scatter_elements %a, %b, %c {axis = 0 : i64} : (tensor<5xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @scatter_elements_c4(%a: tensor<5xf32>, %b: tensor<2xi64>, %c: tensor<2xf16>) {
  // expected-error @below {{(C4)}}
  %0 = top.scatter_elements %a, %b, %c {axis = 0 : i64} : (tensor<5xf32>, tensor<2xi64>, tensor<2xf16>) -> tensor<5xf32>
  return
}

// -----

func.func @scatter_nd_c1(%a: tensor<5x6xf32>, %b: tensor<3x1xi64>, %c: tensor<3x5xf32>) {
  // expected-error @below {{updates are 3x5, must be 3x6 (C1)}}
  %0 = top.scatter_nd %a, %b, %c : (tensor<5x6xf32>, tensor<3x1xi64>, tensor<3x5xf32>) -> tensor<5x6xf32>
  return
}

// -----

func.func @scatter_nd_c2(%a: tensor<5x6xf32>, %b: tensor<3x1xf32>, %c: tensor<3x6xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.scatter_nd %a, %b, %c : (tensor<5x6xf32>, tensor<3x1xf32>, tensor<3x6xf32>) -> tensor<5x6xf32>
  return
}

// -----

func.func @scatter_nd_c3(%a: tensor<5x6xf32>, %b: tensor<3x1xi64>, %c: tensor<3x6xi64>) {
  // expected-error @below {{(C3)}}
  %0 = top.scatter_nd %a, %b, %c : (tensor<5x6xf32>, tensor<3x1xi64>, tensor<3x6xi64>) -> tensor<5x6xf32>
  return
}

// -----

func.func @one_hot_c1(%a: tensor<3xi64>, %b: tensor<2xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.one_hot %a, %b {depth = 7 : i64, axis = 2 : i64} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @one_hot_c2(%a: tensor<3xi64>, %b: tensor<2xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.one_hot %a, %b {depth = 0 : i64, axis = 1 : i64} : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @one_hot_c3(%a: tensor<3xi64>, %b: tensor<3xf32>) {
  // expected-error @below {{(C3)}}
  %0 = top.one_hot %a, %b {depth = 7 : i64, axis = 1 : i64} : (tensor<3xi64>, tensor<3xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @trilu_c1(%a: tensor<3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.trilu %a : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @depth_to_space_c1(%a: tensor<1x6x2x3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.depth_to_space %a {blockSize = 2 : i64} : (tensor<1x6x2x3xf32>) -> tensor<1x2x4x6xf32>
  return
}

// -----

func.func @space_to_depth_c1(%a: tensor<1x2x3x6xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.space_to_depth %a {blockSize = 2 : i64} : (tensor<1x2x3x6xf32>) -> tensor<1x8x2x3xf32>
  return
}

// -----

func.func @resize_c1(%a: tensor<1x4xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.resize %a {sizes = array<i64: 1>, scales = array<f64: 1.0, 2.0>, mode = 1 : i32, coord = 0 : i32} : (tensor<1x4xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @resize_c2(%a: tensor<1x4xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.resize %a {sizes = array<i64: 1, 8>, scales = array<f64: 1.0, 0.0>, mode = 1 : i32, coord = 0 : i32} : (tensor<1x4xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @resize_c3(%a: tensor<1x4xf32>) {
  // expected-error @below {{(C3)}}
  %0 = top.resize %a {sizes = array<i64: 1, -1>, scales = array<f64: 1.0, 2.0>, mode = 1 : i32, coord = 0 : i32} : (tensor<1x4xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @einsum_c1(%a: tensor<2x3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.einsum %a {equation = "i->i"} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @einsum_c2(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{index 'j' has sizes 3 and 4 (C2)}}
  %0 = top.einsum %a, %b {equation = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @einsum_c3(%a: tensor<2x3xf32>) {
  // expected-error @below {{result index 'k' is in no operand (C3)}}
  %0 = top.einsum %a {equation = "ij->ik"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @rnn_c1(%a: tensor<7x2x3xf32>, %b: tensor<1x20x4xf32>, %c: tensor<1x20x5xf32>) {
  // expected-error @below {{w is 1x20x4, must be 1x20x3 (C1)}}
  %0:3 = top.rnn %a, %b, %c {kind = 2 : i32, direction = 0 : i32, hiddenSize = 5 : i64, activations = ["Sigmoid", "Tanh", "Tanh"]} : (tensor<7x2x3xf32>, tensor<1x20x4xf32>, tensor<1x20x5xf32>) -> (tensor<7x1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>)
  return
}

// -----

func.func @rnn_c2(%a: tensor<7x2x3xf32>, %b: tensor<1x20x3xf32>, %c: tensor<1x20x5xf32>) {
  // expected-error @below {{has 1 activations, must have 3 (C2)}}
  %0:3 = top.rnn %a, %b, %c {kind = 2 : i32, direction = 0 : i32, hiddenSize = 5 : i64, activations = ["Tanh"]} : (tensor<7x2x3xf32>, tensor<1x20x3xf32>, tensor<1x20x5xf32>) -> (tensor<7x1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>)
  return
}

// -----

func.func @constant_of_shape_c2() {
  %shape = top.constant dense<[2, -1]> : tensor<2xi64> : tensor<2xi64>
  // expected-error @below {{shape has the negative dim -1 (C2)}}
  %0 = top.constant_of_shape %shape {value = dense<1.0> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<?x?xf32>
  return
}

// -----

func.func @range_c3() {
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %zero = top.constant dense<0.0> : tensor<f32> : tensor<f32>
  // expected-error @below {{has no usable size (C3)}}
  %0 = top.range %zero, %one, %zero : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<?xf32>
  return
}
