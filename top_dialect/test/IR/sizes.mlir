// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// Windows: a size that is not a number is computed by the same formula.
func.func @windows(%x: tensor<?x4x?x9xf32, #top.dims<[n[1:8], 4, 32*h[1:40], 9]>>, %w: tensor<8x4x3x3xf32>) {
  %0 = top.conv %x, %w {strides = array<i64: 2, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x4x?x9xf32, #top.dims<[n[1:8], 4, 32*h[1:40], 9]>>, tensor<8x4x3x3xf32>) -> tensor<?x8x?x9xf32, #top.dims<[n[1:8], 8, 16*h[1:40], 9]>>
  return
}

// -----

func.func @other_size(%x: tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) {
  // expected-error @below {{result 0 is declared as 'tensor<?x4xf32, #top.dims<[m[1:8], 4]>>', but inferred as 'tensor<?x4xf32, #top.dims<[n[1:8], 4]>>'}}
  %0 = top.relu %x : (tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) -> tensor<?x4xf32, #top.dims<[m[1:8], 4]>>
  return
}

// -----

// An unknown size is compatible with any size.
func.func @unknown(%x: tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) {
  %0 = top.relu %x : (tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) -> tensor<?x4xf32>
  %1 = top.relu %0 : (tensor<?x4xf32>) -> tensor<?x4xf32, #top.dims<[n[1:8], 4]>>
  return
}

// -----

func.func @small_window(%x: tensor<1x1x?xf32, #top.dims<[1, 1, n[2:8]]>>, %w: tensor<1x1x3xf32>) {
  // expected-error @below {{spatial dim 0 of the output is n - 2: at the smallest size, the window is larger than the padded input (C6)}}
  %0 = top.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x1x?xf32, #top.dims<[1, 1, n[2:8]]>>, tensor<1x1x3xf32>) -> tensor<1x1x?xf32, #top.dims<[1, 1, n[2:8] - 2]>>
  return
}

// -----

func.func @reshape(%x: tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) {
  %0 = top.reshape %x {shape = array<i64: 2, -1>} : (tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) -> tensor<2x?xf32, #top.dims<[2, 2*n[1:8]]>>
  %1 = top.reshape %x {shape = array<i64: -1, 2, 2>, top.dims = #top.dims<[n[1:8], 2, 2]>} : (tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) -> tensor<?x2x2xf32, #top.dims<[n[1:8], 2, 2]>>
  // expected-error @below {{cannot reshape the 4*n elements of nx4 to 3x-1 (C1)}}
  %2 = top.reshape %x {shape = array<i64: 3, -1>} : (tensor<?x4xf32, #top.dims<[n[1:8], 4]>>) -> tensor<3x?xf32>
  return
}

// -----

func.func @slice(%x: tensor<?x4xf32, #top.dims<[n[2:8], 4]>>, %t: tensor<8xf32>) {
  %0 = top.slice %x {starts = array<i64: 1, 0>, sizes = array<i64: -1, 4>, steps = array<i64: 1, 1>, top.dims = #top.dims<[n[2:8] - 1, 4]>} : (tensor<?x4xf32, #top.dims<[n[2:8], 4]>>) -> tensor<?x4xf32, #top.dims<[n[2:8] - 1, 4]>>
  %1 = top.slice %t {starts = array<i64: -1>, sizes = array<i64: -1>, steps = array<i64: 1>, top.dims = #top.dims<[8 - n[2:8]]>, top.start_dims = #top.dims<[n[2:8]]>} : (tensor<8xf32>) -> tensor<?xf32, #top.dims<[8 - n[2:8]]>>
  // expected-error @below {{start 2, size n - 1, step 1 leaves dim 0 of size n (C1)}}
  %2 = top.slice %x {starts = array<i64: 2, 0>, sizes = array<i64: -1, 4>, steps = array<i64: 1, 1>, top.dims = #top.dims<[n[2:8] - 1, 4]>} : (tensor<?x4xf32, #top.dims<[n[2:8], 4]>>) -> tensor<?x4xf32, #top.dims<[n[2:8] - 1, 4]>>
  return
}

// -----

func.func @broadcast(%a: tensor<?x1xf32, #top.dims<[n[1:8], 1]>>, %b: tensor<1x?xf32, #top.dims<[1, m[1:8]]>>, %c: tensor<8x1xf32>) {
  %0 = top.add %a, %b : (tensor<?x1xf32, #top.dims<[n[1:8], 1]>>, tensor<1x?xf32, #top.dims<[1, m[1:8]]>>) -> tensor<?x?xf32, #top.dims<[n[1:8], m[1:8]]>>
  // expected-error @below {{dims nx1 and 8x1 do not broadcast (C2)}}
  %1 = top.add %a, %c : (tensor<?x1xf32, #top.dims<[n[1:8], 1]>>, tensor<8x1xf32>) -> tensor<8x1xf32>
  return
}
