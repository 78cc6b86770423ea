// RUN: tessera-opt %s -verify-diagnostics -split-input-file
// SPDX-License-Identifier: Apache-2.0

func.func @requantize_c1(%x: tensor<4xi16>, %m: tensor<i32>) {
  // expected-error @below {{x has element type 'i16', but only 'i32' and 'i64' are allowed (C1)}}
  %0 = top.requantize %x, %m, %m {zero = 0 : i64, low = 0 : i64, high = 1 : i64, to = i8} : (tensor<4xi16>, tensor<i32>, tensor<i32>) -> tensor<4xi8>
  return
}

// -----

func.func @requantize_c2(%x: tensor<4xi32>, %m: tensor<i32>, %s: tensor<i64>) {
  // expected-error @below {{shift has element type 'i64', but only 'i32' is allowed (C2)}}
  %0 = top.requantize %x, %m, %s {zero = 0 : i64, low = 0 : i64, high = 1 : i64, to = i8} : (tensor<4xi32>, tensor<i32>, tensor<i64>) -> tensor<4xi8>
  return
}

// -----

func.func @requantize_c3(%x: tensor<1xi32>, %m: tensor<3xi32>, %s: tensor<i32>) {
  // expected-error @below {{dims 3 of multiplier do not broadcast to 1 of x (C3)}}
  %0 = top.requantize %x, %m, %s {zero = 0 : i64, low = 0 : i64, high = 1 : i64, to = i8} : (tensor<1xi32>, tensor<3xi32>, tensor<i32>) -> tensor<3xi8>
  return
}

// -----

func.func @requantize_c4_type(%x: tensor<4xi32>, %m: tensor<i32>) {
  // expected-error @below {{the result has element type 'i64', but only 'i8', 'ui8', 'i16', 'ui16' and 'i32' are allowed (C4)}}
  %0 = top.requantize %x, %m, %m {zero = 0 : i64, low = 0 : i64, high = 1 : i64, to = i64} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi64>
  return
}

// -----

func.func @requantize_c4_bounds(%x: tensor<4xi32>, %m: tensor<i32>) {
  // expected-error @below {{low is -1 and high is 255, but 0 <= low <= high <= 255 is required (C4)}}
  %0 = top.requantize %x, %m, %m {zero = 0 : i64, low = -1 : i64, high = 255 : i64, to = ui8} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xui8>
  return
}

// -----

func.func @requantize_c5(%x: tensor<4xi32>, %m: tensor<i32>) {
  %s = top.constant dense<63> : tensor<i32> : tensor<i32>
  // expected-error @below {{a shift lies outside the range 1 to 62 (C5)}}
  %0 = top.requantize %x, %m, %s {zero = 0 : i64, low = 0 : i64, high = 1 : i64, to = i8} : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<4xi8>
  return
}
