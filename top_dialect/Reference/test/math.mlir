// SPDX-License-Identifier: Apache-2.0
// Unary mathematics and activations: every function returns pairs (actual, expected).

func.func @ceil() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.ceil %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-1.0, -0.0, 0.0, 1.0, 2.0, 3.0]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @floor() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.floor %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-2.0, -1.0, 0.0, 0.0, 1.0, 2.0]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @round() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.round %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-2.0, -0.0, 0.0, 0.0, 2.0, 2.0]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @reciprocal() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[0.25, 1.0, 2.0, 9.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.reciprocal %0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[4.0, 1.0, 0.5, 0.11111111]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @sqrt() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[0.25, 1.0, 2.0, 9.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.sqrt %0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[0.5, 1.0, 1.4142135, 3.0]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @rsqrt() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[0.25, 1.0, 2.0, 9.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.rsqrt %0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[2.0, 1.0, 0.70710677, 0.33333334]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @exp() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.exp %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[0.22313017, 0.60653067, 1.0, 1.6487212, 4.481689, 12.182494]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @log() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = top.constant dense<[0.25, 1.0, 2.0, 9.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.log %0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = top.constant dense<[-1.3862944, 0.0, 0.6931472, 2.1972246]> : tensor<4xf32> : tensor<4xf32>
  return %y, %e0 : tensor<4xf32>, tensor<4xf32>
}

func.func @sin() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.sin %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.997495, -0.47942555, 0.0, 0.47942555, 0.997495, 0.5984721]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @cos() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.cos %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[0.0707372, 0.87758255, 1.0, 0.87758255, 0.0707372, -0.8011436]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @tan() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.tan %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-14.10142, -0.5463025, 0.0, 0.5463025, 14.10142, -0.7470223]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @asin() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[-0.5, 0.0, 0.75]> : tensor<3xf32> : tensor<3xf32>
  %y = top.asin %0 : (tensor<3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[-0.5235988, 0.0, 0.8480621]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @acos() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[-0.5, 0.0, 0.75]> : tensor<3xf32> : tensor<3xf32>
  %y = top.acos %0 : (tensor<3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[2.0943952, 1.5707964, 0.7227343]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @atan() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.atan %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.98279375, -0.4636476, 0.0, 0.4636476, 0.98279375, 1.19029]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @sinh() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.sinh %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-2.1292794, -0.5210953, 0.0, 0.5210953, 2.1292794, 6.0502043]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @cosh() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.cosh %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[2.3524096, 1.127626, 1.0, 1.127626, 2.3524096, 6.1322894]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @tanh() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.tanh %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.90514827, -0.46211717, 0.0, 0.46211717, 0.90514827, 0.9866143]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @asinh() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.asinh %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-1.1947632, -0.4812118, 0.0, 0.4812118, 1.1947632, 1.6472311]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @acosh() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[1.0, 2.0, 5.0]> : tensor<3xf32> : tensor<3xf32>
  %y = top.acosh %0 : (tensor<3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[0.0, 1.316958, 2.2924316]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @atanh() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = top.constant dense<[-0.5, 0.0, 0.75]> : tensor<3xf32> : tensor<3xf32>
  %y = top.atanh %0 : (tensor<3xf32>) -> tensor<3xf32>
  %e0 = top.constant dense<[-0.54930615, 0.0, 0.97295505]> : tensor<3xf32> : tensor<3xf32>
  return %y, %e0 : tensor<3xf32>, tensor<3xf32>
}

func.func @erf() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.erf %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.96610516, -0.5204999, 0.0, 0.5204999, 0.96610516, 0.999593]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @sigmoid() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.sigmoid %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[0.18242553, 0.37754068, 0.5, 0.62245935, 0.8175745, 0.9241418]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @silu() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.silu %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.27363828, -0.18877034, 0.0, 0.31122968, 1.2263618, 2.3103545]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @hard_swish() -> (tensor<7xf32>, tensor<7xf32>) {
  %0 = top.constant dense<[-4.0, -3.0, -1.0, 0.0, 1.0, 3.0, 4.0]> : tensor<7xf32> : tensor<7xf32>
  %y = top.hard_swish %0 : (tensor<7xf32>) -> tensor<7xf32>
  %e0 = top.constant dense<[-0.0, -0.0, -0.3333333, 0.0, 0.6666667, 3.0, 4.0]> : tensor<7xf32> : tensor<7xf32>
  return %y, %e0 : tensor<7xf32>, tensor<7xf32>
}

func.func @mish() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.mish %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.29809976, -0.22074378, 0.0, 0.3752452, 1.4033782, 2.4713924]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @softplus() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.softplus %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[0.20141327, 0.474077, 0.6931472, 0.974077, 1.7014133, 2.5788898]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @softplus_large() -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = top.constant dense<[800.0, -800.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.softplus %0 : (tensor<2xf32>) -> tensor<2xf32>
  %e0 = top.constant dense<[800.0, 0.0]> : tensor<2xf32> : tensor<2xf32>
  return %y, %e0 : tensor<2xf32>, tensor<2xf32>
}

func.func @softsign() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.softsign %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.6, -0.33333334, 0.0, 0.33333334, 0.6, 0.71428573]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @gelu() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.gelu %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.1002108, -0.15426877, 0.0, 0.34573123, 1.3997892, 2.4844759]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @gelu_tanh() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.gelu %0 {tanh = true} : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.100428425, -0.154286, 0.0, 0.345714, 1.3995715, 2.4849157]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @leaky_relu() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.leaky_relu %0 {alpha = 0.1 : f32} : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-0.15, -0.05, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @elu() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.elu %0 {alpha = 2.0 : f32} : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-1.5537397, -0.78693867, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @celu() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.celu %0 {alpha = 2.0 : f32} : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-1.0552669, -0.44239843, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @thresholded_relu() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.thresholded_relu %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[0.0, 0.0, 0.0, 0.0, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @selu() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.selu %0 : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-1.3658143, -0.6917582, 0.0, 0.5253505, 1.5760515, 2.6267526]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @hard_sigmoid() -> (tensor<7xf32>, tensor<7xf32>) {
  %0 = top.constant dense<[-4.0, -3.0, -1.0, 0.0, 1.0, 3.0, 4.0]> : tensor<7xf32> : tensor<7xf32>
  %y = top.hard_sigmoid %0 : (tensor<7xf32>) -> tensor<7xf32>
  %e0 = top.constant dense<[0.0, 0.0, 0.3, 0.5, 0.7, 1.0, 1.0]> : tensor<7xf32> : tensor<7xf32>
  return %y, %e0 : tensor<7xf32>, tensor<7xf32>
}

func.func @shrink() -> (tensor<6xf32>, tensor<6xf32>) {
  %0 = top.constant dense<[-1.5, -0.5, 0.0, 0.5, 1.5, 2.5]> : tensor<6xf32> : tensor<6xf32>
  %y = top.shrink %0 {bias = 0.5 : f32, lambd = 1.0 : f32} : (tensor<6xf32>) -> tensor<6xf32>
  %e0 = top.constant dense<[-1.0, 0.0, 0.0, 0.0, 1.0, 2.0]> : tensor<6xf32> : tensor<6xf32>
  return %y, %e0 : tensor<6xf32>, tensor<6xf32>
}

func.func @tanh_f16() -> (tensor<1xf16>, tensor<1xf16>) {
  %0 = top.constant dense<[0.5]> : tensor<1xf16> : tensor<1xf16>
  %y = top.tanh %0 : (tensor<1xf16>) -> tensor<1xf16>
  %e0 = top.constant dense<[0.4622]> : tensor<1xf16> : tensor<1xf16>
  return %y, %e0 : tensor<1xf16>, tensor<1xf16>
}

func.func @exp_f64() -> (tensor<1xf64>, tensor<1xf64>) {
  %0 = top.constant dense<[1.0]> : tensor<1xf64> : tensor<1xf64>
  %y = top.exp %0 : (tensor<1xf64>) -> tensor<1xf64>
  %e0 = top.constant dense<[2.718281828459045]> : tensor<1xf64> : tensor<1xf64>
  return %y, %e0 : tensor<1xf64>, tensor<1xf64>
}
