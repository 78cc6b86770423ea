// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @reduce_c1_range(%a: tensor<2x3xf32>) {
  // expected-error @below {{axis 2 is not within rank 2 (C1)}}
  %0 = top.reduce %a {kind = 0 : i32, axes = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reduce_c1_order(%a: tensor<2x3xf32>) {
  // expected-error @below {{axes are not sorted and unique: 0 after 1 (C1)}}
  %0 = top.reduce %a {kind = 0 : i32, axes = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @arg_reduce_c1(%a: tensor<2x3xf32>) {
  // expected-error @below {{axis -1 is not within rank 2 (C1)}}
  %0 = top.arg_reduce %a {axis = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xi64>
  return
}

// -----

func.func @arg_reduce_c2(%a: tensor<2x0xf32>) {
  // expected-error @below {{axis 1 has no elements (C2)}}
  %0 = top.arg_reduce %a {axis = 1 : i64} : (tensor<2x0xf32>) -> tensor<2x1xi64>
  return
}

// -----

func.func @cumsum_c1(%a: tensor<2x3xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.cumsum %a {axis = 5 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @topk_c1(%a: tensor<2x9xf32>) {
  // expected-error @below {{(C1)}}
  %0:2 = top.topk %a {k = 3 : i64, axis = 2 : i64} : (tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return
}

// -----

func.func @topk_c2(%a: tensor<2x9xf32>) {
  // expected-error @below {{k = 10, allowed are 0 to 9 (C2)}}
  %0:2 = top.topk %a {k = 10 : i64, axis = 1 : i64} : (tensor<2x9xf32>) -> (tensor<2x10xf32>, tensor<2x10xi64>)
  return
}

// -----

func.func @non_max_suppression_c1(%b: tensor<1x9x4xf32>, %s: tensor<1x3x8xf32>, %m: tensor<i64>, %t: tensor<f32>) {
  // expected-error @below {{boxes are 1x9x4 and scores 1x3x8; allowed are BxNx4 and BxCxN (C1)}}
  %0 = top.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64} : (tensor<1x9x4xf32>, tensor<1x3x8xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x5xi64>
  return
}

// -----

func.func @non_max_suppression_c2(%b: tensor<1x9x4xf16>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %t: tensor<f32>) {
  // expected-error @below {{an operand has element type 'f16', but only 'f32' is allowed (C2)}}
  %0 = top.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64} : (tensor<1x9x4xf16>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x5xi64>
  return
}

// -----

func.func @non_max_suppression_c2_max(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i32>, %t: tensor<f32>) {
  // expected-error @below {{maxBoxes has element type 'i32', but only 'i64' is allowed (C2)}}
  %0 = top.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64} : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<1x3x5xi64>
  return
}

// -----

func.func @non_max_suppression_c3(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %t: tensor<2xf32>) {
  // expected-error @below {{a limit is 2, but must have one element (C3)}}
  %0 = top.non_max_suppression %b, %s, %m, %t, %t {k = 5 : i64} : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x3x5xi64>
  return
}

// -----

func.func @non_max_suppression_c4(%b: tensor<1x9x4xf32>, %s: tensor<1x3x9xf32>, %m: tensor<i64>, %t: tensor<f32>) {
  // expected-error @below {{k = 10, allowed are 1 to 9 (C4)}}
  %0 = top.non_max_suppression %b, %s, %m, %t, %t {k = 10 : i64} : (tensor<1x9x4xf32>, tensor<1x3x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x3x10xi64>
  return
}

// -----

func.func @softmax_c1(%a: tensor<2x9xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.softmax %a {axis = 2 : i64} : (tensor<2x9xf32>) -> tensor<2x9xf32>
  return
}

// -----

func.func @batch_norm_c1(%a: tensor<1x3x4xf32>, %b: tensor<3xf32>, %c: tensor<4xf32>, %d: tensor<3xf32>, %e: tensor<3xf32>) {
  // expected-error @below {{bias is 4, but must be 3 as the channels (C1)}}
  %0 = top.batch_norm %a, %b, %c, %d, %e {epsilon = 1.0e-5 : f64} : (tensor<1x3x4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x4xf32>
  return
}

// -----

func.func @batch_norm_c2(%a: tensor<3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<3xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.batch_norm %a, %b, %c, %d, %e {epsilon = 1.0e-5 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @layer_norm_c1(%a: tensor<2x5x8xf32>, %b: tensor<5xf32>) {
  // expected-error @below {{scale and bias must be 8, one is 5 (C1)}}
  %0 = top.layer_norm %a scale %b {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x5x8xf32>, tensor<5xf32>) -> tensor<2x5x8xf32>
  return
}

// -----

func.func @layer_norm_c2(%a: tensor<2x5xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.layer_norm %a {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @group_norm_c1(%a: tensor<2x6x4xf32>, %b: tensor<6xf32>, %c: tensor<6xf32>) {
  // expected-error @below {{groups = 4 does not divide the 6 channels (C1)}}
  %0 = top.group_norm %a, %b, %c {groups = 4 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x6x4xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x4xf32>
  return
}

// -----

func.func @group_norm_c2(%a: tensor<2x6x4xf32>, %b: tensor<3xf32>, %c: tensor<6xf32>) {
  // expected-error @below {{scale is 3, but must be 6 as the channels (C2)}}
  %0 = top.group_norm %a, %b, %c {groups = 3 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x6x4xf32>, tensor<3xf32>, tensor<6xf32>) -> tensor<2x6x4xf32>
  return
}

// -----

func.func @group_norm_c3(%a: tensor<6xf32>, %b: tensor<6xf32>, %c: tensor<6xf32>) {
  // expected-error @below {{(C3)}}
  %0 = top.group_norm %a, %b, %c {groups = 3 : i64, epsilon = 1.0e-5 : f64} : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @lrn_c1(%a: tensor<1x6x4x4xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.lrn %a {size = 0 : i64, alpha = 1.0e-5 : f64, beta = 1.0e-5 : f64, bias = 1.0e-5 : f64} : (tensor<1x6x4x4xf32>) -> tensor<1x6x4x4xf32>
  return
}

// -----

func.func @lrn_c2(%a: tensor<1x6xf32>) {
  // expected-error @below {{(C2)}}
  %0 = top.lrn %a {size = 1 : i64, alpha = 1.0e-5 : f64, beta = 1.0e-5 : f64, bias = 1.0e-5 : f64} : (tensor<1x6xf32>) -> tensor<1x6xf32>
  return
}

// -----

func.func @attention_c1(%a: tensor<2x5x16xf32>, %b: tensor<2x7x8xf32>, %c: tensor<2x7x4xf32>) {
  // expected-error @below {{(C1)}}
  %0 = top.attention %a, %b, %c {scale = 1.0 : f64} : (tensor<2x5x16xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>
  return
}

// -----

func.func @attention_c2(%a: tensor<5x16xf32>, %b: tensor<2x7x16xf32>, %c: tensor<2x7x4xf32>) {
  // expected-error @below {{q, k, v have rank 2, 3, 3}}
  %0 = top.attention %a, %b, %c {scale = 1.0 : f64} : (tensor<5x16xf32>, tensor<2x7x16xf32>, tensor<2x7x4xf32>) -> tensor<2x5x4xf32>
  return
}

// -----

func.func @attention_c3(%a: tensor<2x5x16xf32>, %b: tensor<3x7x16xf32>, %c: tensor<3x7x4xf32>) {
  // expected-error @below {{do not broadcast (C3)}}
  %0 = top.attention %a, %b, %c {scale = 1.0 : f64} : (tensor<2x5x16xf32>, tensor<3x7x16xf32>, tensor<3x7x4xf32>) -> tensor<2x5x4xf32>
  return
}

// -----

func.func @attention_c4(%a: tensor<2x5x16xf32>, %b: tensor<2x7x16xf32>, %c: tensor<2x7x4xf32>, %d: tensor<4x7xf32>) {
  // expected-error @below {{mask 4x7 does not broadcast to 2x5x7 (C4)}}
  %0 = top.attention %a, %b, %c, %d {scale = 1.0 : f64} : (tensor<2x5x16xf32>, tensor<2x7x16xf32>, tensor<2x7x4xf32>, tensor<4x7xf32>) -> tensor<2x5x4xf32>
  return
}

// -----

func.func @rope_c1(%a: tensor<5x7xf32>, %b: tensor<5x3xf32>, %c: tensor<5x3xf32>) {
  // expected-error @below {{an even last dim (C1)}}
  %0 = top.rope %a, %b, %c : (tensor<5x7xf32>, tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @rope_c2(%a: tensor<5x8xf32>, %b: tensor<5x3xf32>, %c: tensor<5x4xf32>) {
  // expected-error @below {{cos and sin must broadcast to 5x4, one is 5x3 (C2)}}
  %0 = top.rope %a, %b, %c : (tensor<5x8xf32>, tensor<5x3xf32>, tensor<5x4xf32>) -> tensor<5x8xf32>
  return
}
