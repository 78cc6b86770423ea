// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s -verify-diagnostics -split-input-file

#whole = #device.piece<source = 0, sizes = [4], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>
func.func @copy_c1(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{source elements are 'f32', result elements 'i32' (copy_c1)}}
  %y = device.copy %x {pieces = [#whole]} : (tensor<4xf32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// -----

#flat = #device.piece<source = 0, sizes = [4], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>
func.func @copy_c2(%x: tensor<4xf32>) -> tensor<4x1xf32> {
  // expected-error @+1 {{the arrays of piece 0 do not have the ranks of the result, 2, and of source 0, 1 (copy_c2)}}
  %y = device.copy %x {pieces = [#flat]} : (tensor<4xf32>) -> tensor<4x1xf32>
  return %y : tensor<4x1xf32>
}

// -----

#other = #device.piece<source = 1, sizes = [4], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>
func.func @copy_c2_source(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{piece 0 reads source 1 of 1 (copy_c2)}}
  %y = device.copy %x {pieces = [#other]} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#reverse = #device.piece<source = 0, sizes = [4], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [2], src_steps = [-1]>
func.func @copy_c3_source(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{piece 0 reads -1..2 of source dim 0, which has 4 (copy_c3)}}
  %y = device.copy %x {pieces = [#reverse]} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#spread = #device.piece<source = 0, sizes = [4], dst_offsets = [0], dst_steps = [2], src_dims = [0], src_offsets = [0], src_steps = [1]>
func.func @copy_c3_result(%x: tensor<4xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{piece 0 writes 0..6 of result dim 0, which has 6 (copy_c3)}}
  %y = device.copy %x {fill = 0.0 : f64, pieces = [#spread]} : (tensor<4xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

#a = #device.piece<source = 0, sizes = [4], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>
#b = #device.piece<source = 0, sizes = [4], dst_offsets = [3], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>
func.func @copy_c4_overlap(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{pieces 0 and 1 overlap in the result (copy_c4)}}
  %y = device.copy %x {pieces = [#a, #b]} : (tensor<4xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

#even = #device.piece<source = 0, sizes = [4], dst_offsets = [0], dst_steps = [2], src_dims = [0], src_offsets = [0], src_steps = [1]>
func.func @copy_c4_cover(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{the pieces cover 4 of 8 elements and there is no fill (copy_c4)}}
  %y = device.copy %x {pieces = [#even]} : (tensor<4xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @reshape_c1(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{the operand has 4 elements, the result 5 (reshape_c1)}}
  %y = device.reshape %x : (tensor<4xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

func.func @reshape_c2(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{operand elements are 'f32', result elements 'i32' (reshape_c2)}}
  %y = device.reshape %x : (tensor<4xf32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// -----

func.func @reshape_c3(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) -> tensor<1x64xf32> {
  // expected-error @+1 {{order the elements differently (reshape_c3)}}
  %y = device.reshape %x : (tensor<1x16x2x2xf32, #device.blocked<16>>) -> tensor<1x64xf32>
  return %y : tensor<1x64xf32>
}

// -----

func.func @gather_c1(%x: tensor<4x5xf32>, %i: tensor<2xi64>) -> tensor<4x2xf32> {
  // expected-error @+1 {{axis 2 is outside 0..1 (gather_c1)}}
  %y = device.gather %x, %i {axis = 2} : (tensor<4x5xf32>, tensor<2xi64>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @gather_c2(%x: tensor<4x5xf32>, %i: tensor<2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{indices are 'f32', allowed i32 and i64 (gather_c2)}}
  %y = device.gather %x, %i {axis = 1} : (tensor<4x5xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @gather_c3(%x: tensor<4x5xf32>, %i: tensor<2xi64>) -> tensor<2x5xf32> {
  // expected-error @+1 {{result has dims 2x5, expected 4x2 (gather_c3)}}
  %y = device.gather %x, %i {axis = 1} : (tensor<4x5xf32>, tensor<2xi64>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

// -----

func.func @gather_elements_c1(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>) -> tensor<4x2xf32> {
  // expected-error @+1 {{axis -1 is outside 0..1 (gather_elements_c1)}}
  %y = device.gather_elements %x, %i {axis = -1} : (tensor<4x5xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @gather_elements_c2(%x: tensor<4x5xf32>, %i: tensor<4xi64>) -> tensor<4xf32> {
  // expected-error @+1 {{x has rank 2, indices 1 (gather_elements_c2)}}
  %y = device.gather_elements %x, %i {axis = 1} : (tensor<4x5xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @gather_elements_c3(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>) -> tensor<4x5xf32> {
  // expected-error @+1 {{result has dims 4x5, expected 4x2 (gather_elements_c3)}}
  %y = device.gather_elements %x, %i {axis = 1} : (tensor<4x5xf32>, tensor<4x2xi64>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @gather_nd_c1(%x: tensor<4x5xf32>, %i: tensor<4x1xi64>) -> tensor<4xf32> {
  // expected-error @+1 {{batchDims 2 is not below the ranks 2 and 2 (gather_nd_c1)}}
  %y = device.gather_nd %x, %i {batchDims = 2} : (tensor<4x5xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @gather_nd_c2(%x: tensor<4x5xf32>, %i: tensor<4x3xi64>) -> tensor<4xf32> {
  // expected-error @+1 {{index tuples have 3 entries, allowed 1..2 (gather_nd_c2)}}
  %y = device.gather_nd %x, %i : (tensor<4x5xf32>, tensor<4x3xi64>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @gather_nd_c3(%x: tensor<4x5xf32>, %i: tensor<3x1xi64>) -> tensor<3xf32> {
  // expected-error @+1 {{result has dims 3, expected 3x5 (gather_nd_c3)}}
  %y = device.gather_nd %x, %i : (tensor<4x5xf32>, tensor<3x1xi64>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

func.func @insert_c1(%x: tensor<4x5xf32>, %u: tensor<4x2xf32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{axis 2 is outside 0..1 (insert_c1)}}
  %y = device.insert %x, %u {axis = 2, offset = #top.size<n[0:3]>} : (tensor<4x5xf32>, tensor<4x2xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @insert_c2(%x: tensor<4x5xf32>, %u: tensor<3x2xf32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{updates has dims 3x2, expected 4x2 (insert_c2)}}
  %y = device.insert %x, %u {axis = 1, offset = #top.size<n[0:3]>} : (tensor<4x5xf32>, tensor<3x2xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @insert_c3(%x: tensor<4x5xf32>, %u: tensor<4x2xf16>) -> tensor<4x5xf32> {
  // expected-error @+1 {{writes 'f16' into 'f32' (insert_c3)}}
  %y = device.insert %x, %u {axis = 1, offset = #top.size<n[0:3]>} : (tensor<4x5xf32>, tensor<4x2xf16>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @scatter_c1(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>, %u: tensor<4x2xf32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{axis 3 is outside 0..1 (scatter_c1)}}
  %y = device.scatter %x, %i, %u {axis = 3} : (tensor<4x5xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @scatter_c2(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>, %u: tensor<4x3xf32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{updates has dims 4x3, expected 4x2 (scatter_c2)}}
  %y = device.scatter %x, %i, %u {axis = 1} : (tensor<4x5xf32>, tensor<4x2xi64>, tensor<4x3xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @scatter_c3(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>, %u: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{(scatter_c3)}}
  %y = device.scatter %x, %i, %u {axis = 1} : (tensor<4x5xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}

// -----

func.func @scatter_c4(%x: tensor<4x5xf32>, %i: tensor<4x2xi64>, %u: tensor<4x2xf32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{reduction 'mean' is not one of none, add, mul, min, max (scatter_c4)}}
  %y = device.scatter %x, %i, %u {axis = 1, reduction = "mean"} : (tensor<4x5xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

func.func @resize_c1(%x: tensor<1x1x2x2xf32>, %i: tensor<4x1xi32>, %w: tensor<3x1xf32>) -> tensor<1x1x4x2xf32> {
  // expected-error @+1 {{a table of axis 2 has dims 3x1, expected 4 x taps (resize_c1)}}
  %y = device.resize %x, %i, %w {axes = array<i64: 2>} : (tensor<1x1x2x2xf32>, tensor<4x1xi32>, tensor<3x1xf32>) -> tensor<1x1x4x2xf32>
  return %y : tensor<1x1x4x2xf32>
}

// -----

func.func @resize_c2(%x: tensor<1x1x2x2xf32>, %w: tensor<2x1xf32>) -> tensor<1x1x2x2xf32> {
  %i = top.constant dense<[[0], [2]]> : tensor<2x1xi32> : tensor<2x1xi32>
  // expected-error @+1 {{a table holds index 2, allowed 0..1 (resize_c2)}}
  %y = device.resize %x, %i, %w {axes = array<i64: 2>} : (tensor<1x1x2x2xf32>, tensor<2x1xi32>, tensor<2x1xf32>) -> tensor<1x1x2x2xf32>
  return %y : tensor<1x1x2x2xf32>
}

// -----

func.func @resize_c3(%x: tensor<1x1x2x2xf32>, %i: tensor<4x1xi32>, %w: tensor<4x1xf32>) -> tensor<1x1x4x3xf32> {
  // expected-error @+1 {{result has dims 1x1x4x3, expected 1x1x4x2 (resize_c3)}}
  %y = device.resize %x, %i, %w {axes = array<i64: 2>} : (tensor<1x1x2x2xf32>, tensor<4x1xi32>, tensor<4x1xf32>) -> tensor<1x1x4x3xf32>
  return %y : tensor<1x1x4x3xf32>
}

// -----

func.func @resize_c4(%x: tensor<1x1x2x2xf32>, %i: tensor<4x1xi64>, %w: tensor<4x1xf32>) -> tensor<1x1x4x2xf32> {
  // expected-error @+1 {{tables hold 'i64' and 'f32', allowed i32 and f32 (resize_c4)}}
  %y = device.resize %x, %i, %w {axes = array<i64: 2>} : (tensor<1x1x2x2xf32>, tensor<4x1xi64>, tensor<4x1xf32>) -> tensor<1x1x4x2xf32>
  return %y : tensor<1x1x4x2xf32>
}

// -----

func.func @arg_reduce_c1(%x: tensor<2x3xf32>) -> tensor<2x1xi64> {
  // expected-error @+1 {{axis 2 is outside 0..1 (arg_reduce_c1)}}
  %y = device.arg_reduce %x {axis = 2} : (tensor<2x3xf32>) -> tensor<2x1xi64>
  return %y : tensor<2x1xi64>
}

// -----

func.func @arg_reduce_c2(%x: tensor<2x3xf32>) -> tensor<2x1xi32> {
  // expected-error @+1 {{index elements are 'i32', expected i64 (arg_reduce_c2)}}
  %y = device.arg_reduce %x {axis = 1} : (tensor<2x3xf32>) -> tensor<2x1xi32>
  return %y : tensor<2x1xi32>
}

// -----

func.func @topk_c1(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{k = 4, allowed 1..3 (topk_c1)}}
  %y, %i = device.topk %x {axis = 1, k = 4} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  return %y : tensor<2x4xf32>
}

// -----

func.func @topk_c2(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  // expected-error @+1 {{index result has dims 2x3, expected 2x2 (topk_c2)}}
  %y, %i = device.topk %x {axis = 1, k = 2} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x3xi64>)
  return %y : tensor<2x2xf32>
}

// -----

func.func @non_max_suppression_c1(%b: tensor<1x9x4xf32>, %s: tensor<1x3x8xf32>, %m: tensor<i64>, %t: tensor<f32>) {
  // expected-error @below {{boxes are 1x9x4 and scores 1x3x8, allowed BxNx4 and BxCxN (non_max_suppression_c1)}}
  %0 = device.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64} : (tensor<1x9x4xf32>, tensor<1x3x8xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x5xi64>
  return
}

// -----

func.func @non_max_suppression_c1_k(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %t: tensor<f32>) {
  // expected-error @below {{k = 10, allowed 1..9 (non_max_suppression_c1)}}
  %0 = device.non_max_suppression %b, %s, %m, %t, %t {k = 10 : i64} : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x10xi64>
  return
}

// -----

func.func @non_max_suppression_c2(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %t: tensor<2xf32>) {
  // expected-error @below {{operands are not f32 with an i64 maxBoxes and limits of one element (non_max_suppression_c2)}}
  %0 = device.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64} : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x3x5xi64>
  return
}

// -----

func.func @non_max_suppression_c3(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %t: tensor<f32>) {
  // expected-error @below {{index result has dims 1x3x4, expected 1x3x5 (non_max_suppression_c3)}}
  %0 = device.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64} : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x4xi64>
  return
}

// -----

func.func @cumsum_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{axis 2 is outside 0..1 (cumsum_c1)}}
  %y = device.cumsum %x {axis = 2} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @cumsum_c2(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{(cumsum_c2)}}
  %y = device.cumsum %x {axis = 1} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// expected-error @below {{1 sizes and offsets are symbolic, but 0 expressions are listed (piece_c1)}}
#piece = #device.piece<source = 0, sizes = [?], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>

// -----

#behind = #device.piece<source = 0, sizes = [?], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [?], src_steps = [1], symbolic = [n[1:4], n[1:4]]>
func.func @copy_c3(%x: tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[n[1:4]]>> {
  // expected-error @below {{piece 0 reads n..2*n - 1 of source dim 0, which has n (copy_c3)}}
  %y = device.copy %x {pieces = [#behind]} : (tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[n[1:4]]>>
  return %y : tensor<?xf32, #top.dims<[n[1:4]]>>
}

// -----

#half = #device.piece<source = 0, sizes = [?], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1], symbolic = [n[1:4]]>
func.func @copy_c4(%x: tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[2*n[1:4]]>> {
  // expected-error @below {{the pieces cover n of 2*n elements and there is no fill (copy_c4)}}
  %y = device.copy %x {pieces = [#half]} : (tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[2*n[1:4]]>>
  return %y : tensor<?xf32, #top.dims<[2*n[1:4]]>>
}

// -----

// Equal sizes are the same expression.
func.func @map_c1(%x: tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[m[1:4]]>> {
  // expected-error @below {{operand has dims n, which do not broadcast to m (map_c1)}}
  %y = device.map(%x) {
  ^bb0(%e: f32):
    device.yield %e : f32
  } : (tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[m[1:4]]>>
  return %y : tensor<?xf32, #top.dims<[m[1:4]]>>
}

// -----

func.func @custom_c1(%x: tensor<?x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{has a tensor of type 'tensor<?x3xf32>', allowed are sizes that are numbers or expressions (custom_c1)}}
  %y = device.custom %x {opDomain = "test", opName = "Sort", opVersion = 1, opAttributes = "{}"} : (tensor<?x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
