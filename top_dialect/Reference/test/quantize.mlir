// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize: every function returns pairs (actual, expected).

// Ties go to even before the zero point is added; values out of range saturate.
func.func @quantize_rounds() -> (tensor<8xi8>, tensor<8xi8>) {
  %x = top.constant dense<[0.25, 0.75, -0.25, -0.75, 1000.0, -1000.0, 0x7F800000, 0x7FC00000]> : tensor<8xf32> : tensor<8xf32>
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %z = top.constant dense<1> : tensor<i8> : tensor<i8>
  %y = top.quantize %x, %s, %z : (tensor<8xf32>, tensor<f32>, tensor<i8>) -> tensor<8xi8>
  %e0 = top.constant dense<[1, 3, 1, -1, 127, -128, 127, 0]> : tensor<8xi8> : tensor<8xi8>
  return %y, %e0 : tensor<8xi8>, tensor<8xi8>
}

func.func @quantize_unsigned() -> (tensor<4xui8>, tensor<4xui8>) {
  %x = top.constant dense<[-65.0, -64.0, 0.0, 64.0]> : tensor<4xf32> : tensor<4xf32>
  %s = top.constant dense<0.5> : tensor<1xf32> : tensor<1xf32>
  %z = top.constant dense<128> : tensor<1xui8> : tensor<1xui8>
  %y = top.quantize %x, %s, %z : (tensor<4xf32>, tensor<1xf32>, tensor<1xui8>) -> tensor<4xui8>
  %e0 = top.constant dense<[0, 0, 128, 255]> : tensor<4xui8> : tensor<4xui8>
  return %y, %e0 : tensor<4xui8>, tensor<4xui8>
}

// The quotient of 0.35f and 0.1f is 3.5 in f32 and 3.4999999 in f64.
func.func @quantize_divides_in_f32() -> (tensor<2x1xi16>, tensor<2x1xi16>) {
  %x = top.constant dense<[[0.35], [0.35]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %s = top.constant dense<[[0.1], [0.01]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %z = top.constant dense<0> : tensor<i16> : tensor<i16>
  %y = top.quantize %x, %s, %z : (tensor<2x1xf32>, tensor<2x1xf32>, tensor<i16>) -> tensor<2x1xi16>
  %e0 = top.constant dense<[[4], [35]]> : tensor<2x1xi16> : tensor<2x1xi16>
  return %y, %e0 : tensor<2x1xi16>, tensor<2x1xi16>
}

func.func @dequantize() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %x = top.constant dense<[[-128, 127], [0, 5]]> : tensor<2x2xi8> : tensor<2x2xi8>
  %s = top.constant dense<[[0.5], [2.0]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %z = top.constant dense<[[127], [-5]]> : tensor<2x1xi8> : tensor<2x1xi8>
  %y = top.dequantize %x, %s, %z : (tensor<2x2xi8>, tensor<2x1xf32>, tensor<2x1xi8>) -> tensor<2x2xf32>
  %e0 = top.constant dense<[[-127.5, 0.0], [10.0, 20.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e0 : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @dequantize_unsigned() -> (tensor<2xf32>, tensor<2xf32>) {
  %x = top.constant dense<[0, 65535]> : tensor<2xui16> : tensor<2xui16>
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %z = top.constant dense<32768> : tensor<ui16> : tensor<ui16>
  %y = top.dequantize %x, %s, %z : (tensor<2xui16>, tensor<f32>, tensor<ui16>) -> tensor<2xf32>
  %e0 = top.constant dense<[-16384.0, 16383.5]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

// i32 values wider than f32's mantissa are rounded once, then scaled.
func.func @dequantize_i32() -> (tensor<2xf32>, tensor<2xf32>) {
  %x = top.constant dense<[16777217, 16777219]> : tensor<2xi32> : tensor<2xi32>
  %s = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %z = top.constant dense<0> : tensor<i32> : tensor<i32>
  %y = top.dequantize %x, %s, %z : (tensor<2xi32>, tensor<f32>, tensor<i32>) -> tensor<2xf32>
  %e0 = top.constant dense<[16777216.0, 16777220.0]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

// An i32 is rounded twice: -22510 * 0.96 = -21632 (rounded), and -21632 / 256 = -84.5 gives -85, although the exact
// quotient is -84.4993. Halves of the second rounding go away from zero. A shift of 29 multiplies by 2 and saturates.
func.func @requantize_rounds_twice() -> (tensor<6xi8>, tensor<6xi8>) {
  %x = top.constant dense<[-22510, 22510, 3, -3, 1000000, -1000000]> : tensor<6xi32> : tensor<6xi32>
  %m = top.constant dense<[2063699862, 2063699862, 1073741824, 1073741824, 1073741824, 1073741824]> : tensor<6xi32> : tensor<6xi32>
  %s = top.constant dense<[39, 39, 31, 31, 29, 29]> : tensor<6xi32> : tensor<6xi32>
  %y = top.requantize %x, %m, %s {zero = 1 : i64, low = -100 : i64, high = 90 : i64, to = i8} : (tensor<6xi32>, tensor<6xi32>, tensor<6xi32>) -> tensor<6xi8>
  %e0 = top.constant dense<[-84, 86, 3, 0, 90, -100]> : tensor<6xi8> : tensor<6xi8>
  return %y, %e0 : tensor<6xi8>, tensor<6xi8>
}

// An i64 is rounded once, with halves upwards.
func.func @requantize_rounds_once() -> (tensor<2x2xui8>, tensor<2x2xui8>) {
  %x = top.constant dense<[[-22510, 3], [-3, 4294967296]]> : tensor<2x2xi64> : tensor<2x2xi64>
  %m = top.constant dense<[[2063699862], [1073741824]]> : tensor<2x1xi32> : tensor<2x1xi32>
  %s = top.constant dense<[[39], [31]]> : tensor<2x1xi32> : tensor<2x1xi32>
  %y = top.requantize %x, %m, %s {zero = 100 : i64, low = 0 : i64, high = 255 : i64, to = ui8} : (tensor<2x2xi64>, tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x2xui8>
  %e0 = top.constant dense<[[16, 100], [99, 255]]> : tensor<2x2xui8> : tensor<2x2xui8>
  return %y, %e0 : tensor<2x2xui8>, tensor<2x2xui8>
}
