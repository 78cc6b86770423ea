// SPDX-License-Identifier: Apache-2.0
// Arithmetic, logic, comparison, conversion: every function returns pairs (actual, expected).

func.func @add_broadcast() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = top.constant dense<[[-0.75, 0.75, 1.0], [0.0, 0.25, 0.75]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %1 = top.constant dense<[-0.75, 1.75, -2.0]> : tensor<3xf32> : tensor<3xf32>
  %y = top.add %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %e0 = top.constant dense<[[-1.5, 2.5, -1.0], [-0.75, 2.0, -1.25]]> : tensor<2x3xf32> : tensor<2x3xf32>
  return %y, %e0 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @add_wraps() -> (tensor<2xi8>, tensor<2xi8>) {
  %0 = top.constant dense<[127, -128]> : tensor<2xi8> : tensor<2xi8>
  %1 = top.constant dense<[1, -1]> : tensor<2xi8> : tensor<2xi8>
  %y = top.add %0, %1 : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %e0 = top.constant dense<[-128, 127]> : tensor<2xi8> : tensor<2xi8>
  return %y, %e0 : tensor<2xi8>, tensor<2xi8>
}

func.func @add_unsigned_wraps() -> (tensor<1xui8>, tensor<1xui8>) {
  %0 = top.constant dense<[255]> : tensor<1xui8> : tensor<1xui8>
  %1 = top.constant dense<[2]> : tensor<1xui8> : tensor<1xui8>
  %y = top.add %0, %1 : (tensor<1xui8>, tensor<1xui8>) -> tensor<1xui8>
  %e0 = top.constant dense<[1]> : tensor<1xui8> : tensor<1xui8>
  return %y, %e0 : tensor<1xui8>, tensor<1xui8>
}

func.func @add_f16() -> (tensor<2xf16>, tensor<2xf16>) {
  %0 = top.constant dense<[1.0, 2.048e+03]> : tensor<2xf16> : tensor<2xf16>
  %1 = top.constant dense<[0.5, 1.0]> : tensor<2xf16> : tensor<2xf16>
  %y = top.add %0, %1 : (tensor<2xf16>, tensor<2xf16>) -> tensor<2xf16>
  %e0 = top.constant dense<[1.5, 2.048e+03]> : tensor<2xf16> : tensor<2xf16>
  return %y, %e0 : tensor<2xf16>, tensor<2xf16>
}

func.func @add_bf16() -> (tensor<2xbf16>, tensor<2xbf16>) {
  %0 = top.constant dense<[1.0, 256.0]> : tensor<2xbf16> : tensor<2xbf16>
  %1 = top.constant dense<[0.5, 1.0]> : tensor<2xbf16> : tensor<2xbf16>
  %y = top.add %0, %1 : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xbf16>
  %e0 = top.constant dense<[1.5, 256.0]> : tensor<2xbf16> : tensor<2xbf16>
  return %y, %e0 : tensor<2xbf16>, tensor<2xbf16>
}

func.func @add_f64() -> (tensor<1xf64>, tensor<1xf64>) {
  %0 = top.constant dense<[0.1]> : tensor<1xf64> : tensor<1xf64>
  %1 = top.constant dense<[0.2]> : tensor<1xf64> : tensor<1xf64>
  %y = top.add %0, %1 : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %e0 = top.constant dense<[0.30000000000000004]> : tensor<1xf64> : tensor<1xf64>
  return %y, %e0 : tensor<1xf64>, tensor<1xf64>
}

func.func @sub_broadcast() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = top.constant dense<[[2.0], [-1.75]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %1 = top.constant dense<[-0.75, 1.75, -2.0]> : tensor<3xf32> : tensor<3xf32>
  %y = top.sub %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %e0 = top.constant dense<[[2.75, 0.25, 4.0], [-1.0, -3.5, 0.25]]> : tensor<2x3xf32> : tensor<2x3xf32>
  return %y, %e0 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @mul_scalar() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = top.constant dense<[[-0.75, 0.75, 1.0], [0.0, 0.25, 0.75]]> : tensor<2x3xf32> : tensor<2x3xf32>
  %1 = top.constant dense<3.0> : tensor<f32> : tensor<f32>
  %y = top.mul %0, %1 : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %e0 = top.constant dense<[[-2.25, 2.25, 3.0], [0.0, 0.75, 2.25]]> : tensor<2x3xf32> : tensor<2x3xf32>
  return %y, %e0 : tensor<2x3xf32>, tensor<2x3xf32>
}

func.func @mul_int64_wraps() -> (tensor<2xi64>, tensor<2xi64>) {
  %0 = top.constant dense<[4611686018427387904, 3]> : tensor<2xi64> : tensor<2xi64>
  %1 = top.constant dense<[4, 5]> : tensor<2xi64> : tensor<2xi64>
  %y = top.mul %0, %1 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %e0 = top.constant dense<[0, 15]> : tensor<2xi64> : tensor<2xi64>
  return %y, %e0 : tensor<2xi64>, tensor<2xi64>
}

func.func @div_float() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[1.0, -1.0, 0.0]> : tensor<3xf32> : tensor<3xf32>
  %1 = top.constant dense<0.0> : tensor<3xf32> : tensor<3xf32>
  %y = top.div %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @div_truncates() -> (tensor<5xi8>, tensor<5xi8>) {
  %0 = top.constant dense<[7, -7, 7, -7, -128]> : tensor<5xi8> : tensor<5xi8>
  %1 = top.constant dense<[2, 2, -2, -2, -1]> : tensor<5xi8> : tensor<5xi8>
  %y = top.div %0, %1 : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %e0 = top.constant dense<[3, -3, -3, 3, -128]> : tensor<5xi8> : tensor<5xi8>
  return %y, %e0 : tensor<5xi8>, tensor<5xi8>
}

func.func @pow_float() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[2.0, 3.0, 4.0]> : tensor<3xf32> : tensor<3xf32>
  %1 = top.constant dense<[3.0, 2.0, 0.5]> : tensor<3xf32> : tensor<3xf32>
  %y = top.pow %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[8.0, 9.0, 2.0]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @pow_int() -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = top.constant dense<[2, -3, 2, 0]> : tensor<4xi32> : tensor<4xi32>
  %1 = top.constant dense<[10, 3, -1, 0]> : tensor<4xi32> : tensor<4xi32>
  %y = top.pow %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %e0 = top.constant dense<[1024, -27, 0, 1]> : tensor<4xi32> : tensor<4xi32>
  return %y, %e0 : tensor<4xi32>, tensor<4xi32>
}

func.func @pow_int_float() -> (tensor<2xi32>, tensor<2xi32>) {
  %0 = top.constant dense<[2, 9]> : tensor<2xi32> : tensor<2xi32>
  %1 = top.constant dense<[2.0, 0.5]> : tensor<2xf32> : tensor<2xf32>
  %y = top.pow %0, %1 : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xi32>
  %e0 = top.constant dense<[4, 3]> : tensor<2xi32> : tensor<2xi32>
  return %y, %e0 : tensor<2xi32>, tensor<2xi32>
}

func.func @mod_floor() -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = top.constant dense<[7, -7, 7, -7]> : tensor<4xi32> : tensor<4xi32>
  %1 = top.constant dense<[3, 3, -3, -3]> : tensor<4xi32> : tensor<4xi32>
  %y = top.mod %0, %1 : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %e0 = top.constant dense<[1, 2, -2, -1]> : tensor<4xi32> : tensor<4xi32>
  return %y, %e0 : tensor<4xi32>, tensor<4xi32>
}

func.func @mod_truncated() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[7.5, -7.5, 7.5]> : tensor<3xf32> : tensor<3xf32>
  %1 = top.constant dense<[3.0, 3.0, -3.0]> : tensor<3xf32> : tensor<3xf32>
  %y = top.mod %0, %1 {fmod = true} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[1.5, -1.5, 1.5]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @mod_truncated_int() -> (tensor<1xi64>, tensor<1xi64>) {
  %0 = top.constant dense<[-7]> : tensor<1xi64> : tensor<1xi64>
  %1 = top.constant dense<[3]> : tensor<1xi64> : tensor<1xi64>
  %y = top.mod %0, %1 {fmod = true} : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %e0 = top.constant dense<[-1]> : tensor<1xi64> : tensor<1xi64>
  return %y, %e0 : tensor<1xi64>, tensor<1xi64>
}

func.func @min_nan() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[1.0, 0x7FC00000, 2.0, 3.0]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<[2.0, 1.0, 0x7FC00000, -1.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.min %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[1.0, 0x7FC00000, 0x7FC00000, -1.0]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @max_nan() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[1.0, 0x7FC00000, 2.0, 3.0]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<[2.0, 1.0, 0x7FC00000, -1.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.max %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[2.0, 0x7FC00000, 0x7FC00000, 3.0]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @max_unsigned() -> (tensor<1xui64>, tensor<1xui64>) {
  %0 = top.constant dense<[18446744073709551615]> : tensor<1xui64> : tensor<1xui64>
  %1 = top.constant dense<[1]> : tensor<1xui64> : tensor<1xui64>
  %y = top.max %0, %1 : (tensor<1xui64>, tensor<1xui64>) -> tensor<1xui64>
  %e0 = top.constant dense<[18446744073709551615]> : tensor<1xui64> : tensor<1xui64>
  return %y, %e0 : tensor<1xui64>, tensor<1xui64>
}

func.func @bit_shift_left() -> (tensor<2xui8>, tensor<2xui8>) {
  %0 = top.constant dense<[1, 255]> : tensor<2xui8> : tensor<2xui8>
  %1 = top.constant dense<[3, 4]> : tensor<2xui8> : tensor<2xui8>
  %y = top.bit_shift %0, %1 {left = true} : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %e0 = top.constant dense<[8, 240]> : tensor<2xui8> : tensor<2xui8>
  return %y, %e0 : tensor<2xui8>, tensor<2xui8>
}

func.func @bit_shift_right() -> (tensor<2xui8>, tensor<2xui8>) {
  %0 = top.constant dense<[16, 255]> : tensor<2xui8> : tensor<2xui8>
  %1 = top.constant dense<[3, 8]> : tensor<2xui8> : tensor<2xui8>
  %y = top.bit_shift %0, %1 {left = false} : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %e0 = top.constant dense<[2, 0]> : tensor<2xui8> : tensor<2xui8>
  return %y, %e0 : tensor<2xui8>, tensor<2xui8>
}

func.func @prelu() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = top.constant dense<[[1.0, -2.0], [-3.0, 4.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %1 = top.constant dense<[0.5, 0.25]> : tensor<2xf32> : tensor<2xf32>
  %y = top.prelu %0, %1 : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %e0 = top.constant dense<[[1.0, -0.5], [-1.5, 4.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e0 : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @and_logical() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[true, true, false, false]> : tensor<4xi1> : tensor<4xi1>
  %1 = top.constant dense<[true, false, true, false]> : tensor<4xi1> : tensor<4xi1>
  %y = top.and %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %e0 = top.constant dense<[true, false, false, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @and_bits() -> (tensor<1xi32>, tensor<1xi32>) {
  %0 = top.constant dense<[12]> : tensor<1xi32> : tensor<1xi32>
  %1 = top.constant dense<[10]> : tensor<1xi32> : tensor<1xi32>
  %y = top.and %0, %1 : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
  %e0 = top.constant dense<[8]> : tensor<1xi32> : tensor<1xi32>
  return %y, %e0 : tensor<1xi32>, tensor<1xi32>
}

func.func @or_logical() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[true, true, false, false]> : tensor<4xi1> : tensor<4xi1>
  %1 = top.constant dense<[true, false, true, false]> : tensor<4xi1> : tensor<4xi1>
  %y = top.or %0, %1 : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %e0 = top.constant dense<[true, true, true, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @xor_bits() -> (tensor<1xui8>, tensor<1xui8>) {
  %0 = top.constant dense<[12]> : tensor<1xui8> : tensor<1xui8>
  %1 = top.constant dense<[10]> : tensor<1xui8> : tensor<1xui8>
  %y = top.xor %0, %1 : (tensor<1xui8>, tensor<1xui8>) -> tensor<1xui8>
  %e0 = top.constant dense<[6]> : tensor<1xui8> : tensor<1xui8>
  return %y, %e0 : tensor<1xui8>, tensor<1xui8>
}

func.func @not_logical() -> (tensor<2xi1>, tensor<2xi1>) {
  %0 = top.constant dense<[true, false]> : tensor<2xi1> : tensor<2xi1>
  %y = top.not %0 : (tensor<2xi1>) -> tensor<2xi1>
  %e0 = top.constant dense<[false, true]> : tensor<2xi1> : tensor<2xi1>
  return %y, %e0 : tensor<2xi1>, tensor<2xi1>
}

func.func @not_bits() -> (tensor<2xui8>, tensor<2xui8>) {
  %0 = top.constant dense<[0, 5]> : tensor<2xui8> : tensor<2xui8>
  %y = top.not %0 : (tensor<2xui8>) -> tensor<2xui8>
  %e0 = top.constant dense<[255, 250]> : tensor<2xui8> : tensor<2xui8>
  return %y, %e0 : tensor<2xui8>, tensor<2xui8>
}

func.func @compare_eq() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<2.0> : tensor<4xf32> : tensor<4xf32>
  %y = top.compare %0, %1 {kind = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[false, true, false, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @compare_ne() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<2.0> : tensor<4xf32> : tensor<4xf32>
  %y = top.compare %0, %1 {kind = 1 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[true, false, true, true]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @compare_lt() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<2.0> : tensor<4xf32> : tensor<4xf32>
  %y = top.compare %0, %1 {kind = 2 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[true, false, false, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @compare_le() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<2.0> : tensor<4xf32> : tensor<4xf32>
  %y = top.compare %0, %1 {kind = 3 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[true, true, false, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @compare_gt() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<2.0> : tensor<4xf32> : tensor<4xf32>
  %y = top.compare %0, %1 {kind = 4 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[false, false, true, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @compare_ge() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[1.0, 2.0, 3.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %1 = top.constant dense<2.0> : tensor<4xf32> : tensor<4xf32>
  %y = top.compare %0, %1 {kind = 5 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[false, true, true, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @compare_int64_exact() -> (tensor<1xi1>, tensor<1xi1>) {
  %0 = top.constant dense<[9007199254740993]> : tensor<1xi64> : tensor<1xi64>
  %1 = top.constant dense<[9007199254740992]> : tensor<1xi64> : tensor<1xi64>
  %y = top.compare %0, %1 {kind = 4 : i32} : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
  %e0 = top.constant dense<[true]> : tensor<1xi1> : tensor<1xi1>
  return %y, %e0 : tensor<1xi1>, tensor<1xi1>
}

func.func @where_broadcast() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = top.constant dense<[[true], [false]]> : tensor<2x1xi1> : tensor<2x1xi1>
  %1 = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %2 = top.constant dense<9.0> : tensor<f32> : tensor<f32>
  %y = top.where %0, %1, %2 : (tensor<2x1xi1>, tensor<2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %e0 = top.constant dense<[[1.0, 2.0], [9.0, 9.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e0 : tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @is_inf() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[0x7F800000, 0xFF800000, 1.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %y = top.is_inf %0 : (tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[true, true, false, false]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @is_inf_negative() -> (tensor<2xi1>, tensor<2xi1>) {
  %0 = top.constant dense<[0x7F800000, 0xFF800000]> : tensor<2xf32> : tensor<2xf32>
  %y = top.is_inf %0 {detectPositive = false} : (tensor<2xf32>) -> tensor<2xi1>
  %e0 = top.constant dense<[false, true]> : tensor<2xi1> : tensor<2xi1>
  return %y, %e0 : tensor<2xi1>, tensor<2xi1>
}

func.func @is_nan() -> (tensor<3xi1>, tensor<3xi1>) {
  %0 = top.constant dense<[0x7FC00000, 1.0, 0x7F800000]> : tensor<3xf32> : tensor<3xf32>
  %y = top.is_nan %0 : (tensor<3xf32>) -> tensor<3xi1>
  %e0 = top.constant dense<[true, false, false]> : tensor<3xi1> : tensor<3xi1>
  return %y, %e0 : tensor<3xi1>, tensor<3xi1>
}

func.func @bitcast() -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = top.constant dense<[1.0, -0.0, 0x7F800000, -1.5]> : tensor<4xf32> : tensor<4xf32>
  %y = top.bitcast %0 {to = i32} : (tensor<4xf32>) -> tensor<4xi32>
  %e0 = top.constant dense<[1065353216, -2147483648, 2139095040, -1077936128]> : tensor<4xi32> : tensor<4xi32>
  return %y, %e0 : tensor<4xi32>, tensor<4xi32>
}

func.func @bitcast_back() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = top.constant dense<[1065353216, -1077936128]> : tensor<2xi32> : tensor<2xi32>
  %y = top.bitcast %0 {to = f32} : (tensor<2xi32>) -> tensor<2xf32>
  %e0 = top.constant dense<[1.0, -1.5]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

func.func @bit_shift_far() -> (tensor<3xui32>, tensor<3xui32>) {
  %0 = top.constant dense<[7, 7, 7]> : tensor<3xui32> : tensor<3xui32>
  %1 = top.constant dense<[1, 32, 64]> : tensor<3xui32> : tensor<3xui32>
  %y = top.bit_shift %0, %1 {left = true} : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
  %e0 = top.constant dense<[14, 0, 0]> : tensor<3xui32> : tensor<3xui32>
  return %y, %e0 : tensor<3xui32>, tensor<3xui32>
}

func.func @bit_shift_signed() -> (tensor<4xi32>, tensor<4xi32>) {
  %0 = top.constant dense<[-8, -8, 8, -8]> : tensor<4xi32> : tensor<4xi32>
  %1 = top.constant dense<[1, 40, 40, -1]> : tensor<4xi32> : tensor<4xi32>
  %y = top.bit_shift %0, %1 {left = false} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %e0 = top.constant dense<[-4, -1, 0, -1]> : tensor<4xi32> : tensor<4xi32>
  return %y, %e0 : tensor<4xi32>, tensor<4xi32>
}

func.func @cast_truncates() -> (tensor<3xi32>, tensor<3xi32>) {
  %0 = top.constant dense<[1.9, -1.9, 300.5]> : tensor<3xf32> : tensor<3xf32>
  %y = top.cast %0 {to = i32} : (tensor<3xf32>) -> tensor<3xi32>
  %e0 = top.constant dense<[1, -1, 300]> : tensor<3xi32> : tensor<3xi32>
  return %y, %e0 : tensor<3xi32>, tensor<3xi32>
}

func.func @cast_to_bool() -> (tensor<4xi1>, tensor<4xi1>) {
  %0 = top.constant dense<[0.0, -0.0, 0.5, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %y = top.cast %0 {to = i1} : (tensor<4xf32>) -> tensor<4xi1>
  %e0 = top.constant dense<[false, false, true, true]> : tensor<4xi1> : tensor<4xi1>
  return %y, %e0 : tensor<4xi1>, tensor<4xi1>
}

func.func @cast_int64_to_f32() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = top.constant dense<[16777217, -5]> : tensor<2xi64> : tensor<2xi64>
  %y = top.cast %0 {to = f32} : (tensor<2xi64>) -> tensor<2xf32>
  %e0 = top.constant dense<[1.6777216e+07, -5.0]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

func.func @cast_int_wraps() -> (tensor<2xui8>, tensor<2xui8>) {
  %0 = top.constant dense<[300, -1]> : tensor<2xi32> : tensor<2xi32>
  %y = top.cast %0 {to = ui8} : (tensor<2xi32>) -> tensor<2xui8>
  %e0 = top.constant dense<[44, 255]> : tensor<2xui8> : tensor<2xui8>
  return %y, %e0 : tensor<2xui8>, tensor<2xui8>
}

func.func @cast_f32_to_f16() -> (tensor<5xf16>, tensor<5xf16>) {
  %0 = top.constant dense<[65520.0, 65519.0, 1.0e-08, 6.0e-08, 0.1]> : tensor<5xf32> : tensor<5xf32>
  %y = top.cast %0 {to = f16} : (tensor<5xf32>) -> tensor<5xf16>
  %e0 = top.constant dense<[0x7C00, 6.55e+04, 0.0, 6.0e-08, 0.1]> : tensor<5xf16> : tensor<5xf16>
  return %y, %e0 : tensor<5xf16>, tensor<5xf16>
}

func.func @cast_f32_to_bf16() -> (tensor<2xbf16>, tensor<2xbf16>) {
  %0 = top.constant dense<[1.0039062, 1.0117188]> : tensor<2xf32> : tensor<2xf32>
  %y = top.cast %0 {to = bf16} : (tensor<2xf32>) -> tensor<2xbf16>
  %e0 = top.constant dense<[1.0, 1.015625]> : tensor<2xbf16> : tensor<2xbf16>
  return %y, %e0 : tensor<2xbf16>, tensor<2xbf16>
}

func.func @clip() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[-1.0, 0.5, 3.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %y = top.clip %0 {lo = 0.0 : f64, hi = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[0.0, 0.5, 1.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @clip_int() -> (tensor<3xi8>, tensor<3xi8>) {
  %0 = top.constant dense<[-10, 5, 100]> : tensor<3xi8> : tensor<3xi8>
  %y = top.clip %0 {lo = -3.0 : f64, hi = 7.0 : f64} : (tensor<3xi8>) -> tensor<3xi8>
  %e0 = top.constant dense<[-3, 5, 7]> : tensor<3xi8> : tensor<3xi8>
  return %y, %e0 : tensor<3xi8>, tensor<3xi8>
}

func.func @clip_open() -> (tensor<2xi64>, tensor<2xi64>) {
  %0 = top.constant dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64> : tensor<2xi64>
  %y = top.clip %0 {lo = 0xFFF0000000000000 : f64, hi = 0x7FF0000000000000 : f64} : (tensor<2xi64>) -> tensor<2xi64>
  %e0 = top.constant dense<[-9223372036854775808, 9223372036854775807]> : tensor<2xi64> : tensor<2xi64>
  return %y, %e0 : tensor<2xi64>, tensor<2xi64>
}

func.func @relu() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[-1.0, 0.0, 2.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %y = top.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[0.0, 0.0, 2.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @relu_int() -> (tensor<2xi32>, tensor<2xi32>) {
  %0 = top.constant dense<[-1, 3]> : tensor<2xi32> : tensor<2xi32>
  %y = top.relu %0 : (tensor<2xi32>) -> tensor<2xi32>
  %e0 = top.constant dense<[0, 3]> : tensor<2xi32> : tensor<2xi32>
  return %y, %e0 : tensor<2xi32>, tensor<2xi32>
}

func.func @abs() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = top.constant dense<[-1.5, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.abs %0 : (tensor<2xf32>) -> tensor<2xf32>
  %e0 = top.constant dense<[1.5, 2.0]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

func.func @abs_int() -> (tensor<2xi8>, tensor<2xi8>) {
  %0 = top.constant dense<[-128, -5]> : tensor<2xi8> : tensor<2xi8>
  %y = top.abs %0 : (tensor<2xi8>) -> tensor<2xi8>
  %e0 = top.constant dense<[-128, 5]> : tensor<2xi8> : tensor<2xi8>
  return %y, %e0 : tensor<2xi8>, tensor<2xi8>
}

func.func @neg() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = top.constant dense<[-1.5, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.neg %0 : (tensor<2xf32>) -> tensor<2xf32>
  %e0 = top.constant dense<[1.5, -2.0]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

func.func @neg_int() -> (tensor<2xi64>, tensor<2xi64>) {
  %0 = top.constant dense<[-7, 5]> : tensor<2xi64> : tensor<2xi64>
  %y = top.neg %0 : (tensor<2xi64>) -> tensor<2xi64>
  %e0 = top.constant dense<[7, -5]> : tensor<2xi64> : tensor<2xi64>
  return %y, %e0 : tensor<2xi64>, tensor<2xi64>
}

// The sign of NaN is NaN.
func.func @sign() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[-3.0, 0.0, 2.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  %y = top.sign %0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[-1.0, 0.0, 1.0, 0x7FC00000]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}
