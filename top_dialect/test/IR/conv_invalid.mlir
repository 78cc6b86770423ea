// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @conv_c1_rank(%a: tensor<1x3xf32>, %b: tensor<8x3xf32>) {
  // expected-error @below {{input has rank 2, allowed are 3 to 5 (C1)}}
  %0 = top.conv %a, %b {strides = array<i64>, pads = array<i64>, dilations = array<i64>} : (tensor<1x3xf32>, tensor<8x3xf32>) -> tensor<1x8xf32>
  return
}

// -----

func.func @conv_c1_weight(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3xf32>) {
  // expected-error @below {{weight has rank 3, input rank 4}}
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3xf32>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_c2(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3x3xf32>) {
  // expected-error @below {{strides has the entry 0, allowed are 1 to}}
  %0 = top.conv %a, %b {strides = array<i64: 0, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_c3(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3x3xf32>) {
  // expected-error @below {{pads has 2 entries, must have 4 (C3)}}
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_c4_groups(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3x3xf32>) {
  // expected-error @below {{groups = 2 does not divide the 3 input and 8 output channels (C4)}}
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_c4_weight(%a: tensor<1x3x9x9xf32>, %b: tensor<8x4x3x3xf32>) {
  // expected-error @below {{expects 4 input channels per group, the input of 1x3x9x9 has 3 (C4)}}
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_c5(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3x3xf32>, %c: tensor<7xf32>) {
  // expected-error @below {{bias is 7, but must be 8 (C5)}}
  %0 = top.conv %a, %b, %c {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>, tensor<7xf32>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_c6(%a: tensor<1x3x1x9xf32>, %b: tensor<8x3x3x3xf32>) {
  // expected-error @below {{spatial dim 0 of the output would be 0}}
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x1x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_c8(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3x3xf16>) {
  // expected-error @below {{operands have element types 'f32' and 'f16'}}
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf16>) -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @conv_result(%a: tensor<1x3x9x9xf32>, %b: tensor<8x3x3x3xf32>) {
  // expected-error @below {{result 0 is declared as 'tensor<1x8x4x5xf32>', but inferred as 'tensor<1x8x5x5xf32>'}}
  %0 = top.conv %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x9x9xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x4x5xf32>
  return
}

// -----

func.func @conv_transpose_c4(%a: tensor<1x4x3x3xf32>, %b: tensor<3x2x3x3xf32>) {
  // expected-error @below {{(C4)}}
  %0 = top.conv_transpose %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, outputPadding = array<i64: 0, 0>} : (tensor<1x4x3x3xf32>, tensor<3x2x3x3xf32>) -> tensor<1x2x5x5xf32>
  return
}

// -----

func.func @conv_transpose_c7(%a: tensor<1x4x3x3xf32>, %b: tensor<4x2x3x3xf32>) {
  // expected-error @below {{outputPadding 2 must be below the stride 2}}
  %0 = top.conv_transpose %a, %b {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, outputPadding = array<i64: 2, 0>} : (tensor<1x4x3x3xf32>, tensor<4x2x3x3xf32>) -> tensor<1x2x7x5xf32>
  return
}

// -----

func.func @matmul_c1(%a: tensor<3xf32>, %b: tensor<3x2xf32>) {
  // expected-error @below {{operands have rank 1 and 2, both must be at least 2 (C1)}}
  %0 = top.matmul %a, %b : (tensor<3xf32>, tensor<3x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @matmul_c2(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{inner dims are 3 of 2x3 and 4 of 4x5}}
  %0 = top.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @matmul_c3(%a: tensor<2x4x3xf32>, %b: tensor<3x3x5xf32>) {
  // expected-error @below {{batch dims 2 and 3 do not broadcast (C3)}}
  %0 = top.matmul %a, %b : (tensor<2x4x3xf32>, tensor<3x3x5xf32>) -> tensor<2x4x5xf32>
  return
}

// -----

func.func @matmul_c4(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{bias is 4, but must be 5 (C4)}}
  %0 = top.matmul %a, %b, %c : (tensor<2x3xf32>, tensor<3x5xf32>, tensor<4xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @matmul_c5(%a: tensor<2x3xf32>, %b: tensor<3x5xf16>) {
  // expected-error @below {{(C5)}}
  %0 = top.matmul %a, %b : (tensor<2x3xf32>, tensor<3x5xf16>) -> tensor<2x5xf32>
  return
}

// -----

func.func @pool_c1(%a: tensor<3x8xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.max_pool %a {kernel = array<i64>, strides = array<i64>, pads = array<i64>, dilations = array<i64>} : (tensor<3x8xf32>) -> tensor<3x8xf32>
  return
}

// -----

func.func @pool_c2(%a: tensor<1x3x8x8xf32>) {
  // expected-error @below {{kernel has 1 entries, must have 2 (C2)}}
  %0 = top.max_pool %a {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, kernel = array<i64: 3>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @pool_c3(%a: tensor<1x3x8x8xf32>) {
  // expected-error @below {{pads of spatial dim 0 must be below the kernel extent 2 (C3)}}
  %0 = top.avg_pool %a {strides = array<i64: 2, 2>, pads = array<i64: 2, 0, 0, 0>, dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @pool_c4(%a: tensor<1x3x2x8xf32>) {
  // expected-error @below {{(C4)}}
  %0 = top.avg_pool %a {strides = array<i64: 2, 2>, pads = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>, kernel = array<i64: 5, 2>} : (tensor<1x3x2x8xf32>) -> tensor<1x3x1x4xf32>
  return
}
