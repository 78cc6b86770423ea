// RUN: tessera-opt %s -verify-diagnostics -split-input-file
// SPDX-License-Identifier: Apache-2.0

func.func @quantize_c1_x(%x: tensor<4xf16>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error @below {{x has element type 'f16', but only 'f32' is allowed (C1)}}
  %0 = top.quantize %x, %s, %z : (tensor<4xf16>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  return
}

// -----

func.func @quantize_c1_scale(%x: tensor<4xf32>, %s: tensor<f64>, %z: tensor<i8>) {
  // expected-error @below {{scale has element type 'f64', but only 'f32' is allowed (C1)}}
  %0 = top.quantize %x, %s, %z : (tensor<4xf32>, tensor<f64>, tensor<i8>) -> tensor<4xi8>
  return
}

// -----

func.func @quantize_c2(%x: tensor<4xf32>, %s: tensor<f32>, %z: tensor<i32>) {
  // expected-error @below {{zeroPoint has element type 'i32', but only 'i8', 'ui8', 'i16' and 'ui16' are allowed (C2)}}
  %0 = top.quantize %x, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<i32>) -> tensor<4xi32>
  return
}

// -----

func.func @quantize_c3_dim(%x: tensor<4xf32>, %s: tensor<3xf32>, %z: tensor<i8>) {
  // expected-error @below {{dims 3 of scale do not broadcast to 4 of x (C3)}}
  %0 = top.quantize %x, %s, %z : (tensor<4xf32>, tensor<3xf32>, tensor<i8>) -> tensor<4xi8>
  return
}

// -----

func.func @quantize_c3_widens(%x: tensor<1xf32>, %s: tensor<f32>, %z: tensor<3xi8>) {
  // expected-error @below {{dims 3 of zeroPoint do not broadcast to 1 of x (C3)}}
  %0 = top.quantize %x, %s, %z : (tensor<1xf32>, tensor<f32>, tensor<3xi8>) -> tensor<3xi8>
  return
}

// -----

func.func @quantize_c3_rank(%x: tensor<4xf32>, %s: tensor<1x4xf32>, %z: tensor<i8>) {
  // expected-error @below {{dims 1x4 of scale do not broadcast to 4 of x (C3)}}
  %0 = top.quantize %x, %s, %z : (tensor<4xf32>, tensor<1x4xf32>, tensor<i8>) -> tensor<1x4xi8>
  return
}

// -----

func.func @quantize_result(%x: tensor<4xf32>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error @below {{result 0 is declared as 'tensor<4xui8>', but inferred as 'tensor<4xi8>'}}
  %0 = top.quantize %x, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xui8>
  return
}

// -----

func.func @dequantize_c1(%x: tensor<4xi8>, %s: tensor<f16>, %z: tensor<i8>) {
  // expected-error @below {{scale has element type 'f16', but only 'f32' is allowed (C1)}}
  %0 = top.dequantize %x, %s, %z : (tensor<4xi8>, tensor<f16>, tensor<i8>) -> tensor<4xf16>
  return
}

// -----

func.func @dequantize_c2(%x: tensor<4xi64>, %s: tensor<f32>, %z: tensor<i64>) {
  // expected-error @below {{x has element type 'i64', but only 'i8', 'ui8', 'i16', 'ui16' and 'i32' are allowed (C2)}}
  %0 = top.dequantize %x, %s, %z : (tensor<4xi64>, tensor<f32>, tensor<i64>) -> tensor<4xf32>
  return
}

// -----

func.func @dequantize_c2_differs(%x: tensor<4xui8>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error @below {{zeroPoint has element type 'i8', but x has 'ui8' (C2)}}
  %0 = top.dequantize %x, %s, %z : (tensor<4xui8>, tensor<f32>, tensor<i8>) -> tensor<4xf32>
  return
}

// -----

func.func @dequantize_c3(%x: tensor<2x4xi8>, %s: tensor<3x1xf32>, %z: tensor<i8>) {
  // expected-error @below {{dims 3x1 of scale do not broadcast to 2x4 of x (C3)}}
  %0 = top.dequantize %x, %s, %z : (tensor<2x4xi8>, tensor<3x1xf32>, tensor<i8>) -> tensor<2x4xf32>
  return
}

// -----

func.func @quantize_c4(%x: tensor<4xf32>, %s: tensor<f32>, %z: tensor<i16>) {
  // expected-error @below {{levels is 32768, but only 0 or a positive value of a signed element type is allowed, which is 'i16' here (C4)}}
  %0 = top.quantize %x, %s, %z {levels = 32768 : i64} : (tensor<4xf32>, tensor<f32>, tensor<i16>) -> tensor<4xi16>
  return
}

// -----

func.func @dequantize_c4(%x: tensor<4xui8>, %s: tensor<f32>, %z: tensor<ui8>) {
  // expected-error @below {{levels is 100, but only 0 or a positive value of a signed element type is allowed, which is 'ui8' here (C4)}}
  %0 = top.dequantize %x, %s, %z {levels = 100 : i64} : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  return
}
