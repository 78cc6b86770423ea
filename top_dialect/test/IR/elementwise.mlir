// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: @add
// CHECK: top.add
func.func @add(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.add %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @sub
// CHECK: top.sub
func.func @sub(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.sub %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @mul
// CHECK: top.mul
func.func @mul(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.mul %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @div
// CHECK: top.div
func.func @div(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.div %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @pow
// CHECK: top.pow
func.func @pow(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.pow %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @mod
// CHECK: top.mod
func.func @mod(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.mod %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @min
// CHECK: top.min
func.func @min(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.min %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @max
// CHECK: top.max
func.func @max(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.max %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @prelu
// CHECK: top.prelu
func.func @prelu(%a: tensor<2x1x4xf32>, %b: tensor<3x1xf32>) {
  %0 = top.prelu %a, %b : (tensor<2x1x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: @and
// CHECK: top.and
func.func @and(%a: tensor<2x3xi1>, %b: tensor<3xi1>) {
  %0 = top.and %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

// CHECK-LABEL: @or
// CHECK: top.or
func.func @or(%a: tensor<2x3xi1>, %b: tensor<3xi1>) {
  %0 = top.or %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

// CHECK-LABEL: @xor
// CHECK: top.xor
func.func @xor(%a: tensor<2x3xi1>, %b: tensor<3xi1>) {
  %0 = top.xor %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return
}

// CHECK-LABEL: @bit_shift
// CHECK: top.bit_shift
func.func @bit_shift(%a: tensor<3xui8>, %b: tensor<3xui8>) {
  %0 = top.bit_shift %a, %b {left = true} : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  return
}

// CHECK-LABEL: @compare
// CHECK: top.compare
func.func @compare(%a: tensor<2x?xf32>, %b: tensor<1x4xf32>) {
  %0 = top.compare %a, %b {kind = 2 : i32} : (tensor<2x?xf32>, tensor<1x4xf32>) -> tensor<2x4xi1>
  return
}

// CHECK-LABEL: @where
// CHECK: top.where
func.func @where(%a: tensor<4xi1>, %b: tensor<2x1xf32>, %c: tensor<f32>) {
  %0 = top.where %a, %b, %c : (tensor<4xi1>, tensor<2x1xf32>, tensor<f32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: @not
// CHECK: top.not
func.func @not(%a: tensor<2x?xi1>) {
  %0 = top.not %a : (tensor<2x?xi1>) -> tensor<2x?xi1>
  return
}

// CHECK-LABEL: @abs
// CHECK: top.abs
func.func @abs(%a: tensor<2x?xf32>) {
  %0 = top.abs %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @neg
// CHECK: top.neg
func.func @neg(%a: tensor<2x?xf32>) {
  %0 = top.neg %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @sign
// CHECK: top.sign
func.func @sign(%a: tensor<2x?xf32>) {
  %0 = top.sign %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @ceil
// CHECK: top.ceil
func.func @ceil(%a: tensor<2x?xf32>) {
  %0 = top.ceil %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @floor
// CHECK: top.floor
func.func @floor(%a: tensor<2x?xf32>) {
  %0 = top.floor %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @round
// CHECK: top.round
func.func @round(%a: tensor<2x?xf32>) {
  %0 = top.round %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @reciprocal
// CHECK: top.reciprocal
func.func @reciprocal(%a: tensor<2x?xf32>) {
  %0 = top.reciprocal %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @sqrt
// CHECK: top.sqrt
func.func @sqrt(%a: tensor<2x?xf32>) {
  %0 = top.sqrt %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @rsqrt
// CHECK: top.rsqrt
func.func @rsqrt(%a: tensor<2x?xf32>) {
  %0 = top.rsqrt %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @exp
// CHECK: top.exp
func.func @exp(%a: tensor<2x?xf32>) {
  %0 = top.exp %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @log
// CHECK: top.log
func.func @log(%a: tensor<2x?xf32>) {
  %0 = top.log %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @sin
// CHECK: top.sin
func.func @sin(%a: tensor<2x?xf32>) {
  %0 = top.sin %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @cos
// CHECK: top.cos
func.func @cos(%a: tensor<2x?xf32>) {
  %0 = top.cos %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @tan
// CHECK: top.tan
func.func @tan(%a: tensor<2x?xf32>) {
  %0 = top.tan %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @asin
// CHECK: top.asin
func.func @asin(%a: tensor<2x?xf32>) {
  %0 = top.asin %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @acos
// CHECK: top.acos
func.func @acos(%a: tensor<2x?xf32>) {
  %0 = top.acos %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @atan
// CHECK: top.atan
func.func @atan(%a: tensor<2x?xf32>) {
  %0 = top.atan %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @sinh
// CHECK: top.sinh
func.func @sinh(%a: tensor<2x?xf32>) {
  %0 = top.sinh %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @cosh
// CHECK: top.cosh
func.func @cosh(%a: tensor<2x?xf32>) {
  %0 = top.cosh %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @tanh
// CHECK: top.tanh
func.func @tanh(%a: tensor<2x?xf32>) {
  %0 = top.tanh %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @asinh
// CHECK: top.asinh
func.func @asinh(%a: tensor<2x?xf32>) {
  %0 = top.asinh %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @acosh
// CHECK: top.acosh
func.func @acosh(%a: tensor<2x?xf32>) {
  %0 = top.acosh %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @atanh
// CHECK: top.atanh
func.func @atanh(%a: tensor<2x?xf32>) {
  %0 = top.atanh %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @erf
// CHECK: top.erf
func.func @erf(%a: tensor<2x?xf32>) {
  %0 = top.erf %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @relu
// CHECK: top.relu
func.func @relu(%a: tensor<2x?xf32>) {
  %0 = top.relu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @sigmoid
// CHECK: top.sigmoid
func.func @sigmoid(%a: tensor<2x?xf32>) {
  %0 = top.sigmoid %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @silu
// CHECK: top.silu
func.func @silu(%a: tensor<2x?xf32>) {
  %0 = top.silu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @hard_swish
// CHECK: top.hard_swish
func.func @hard_swish(%a: tensor<2x?xf32>) {
  %0 = top.hard_swish %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @mish
// CHECK: top.mish
func.func @mish(%a: tensor<2x?xf32>) {
  %0 = top.mish %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @softplus
// CHECK: top.softplus
func.func @softplus(%a: tensor<2x?xf32>) {
  %0 = top.softplus %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @softsign
// CHECK: top.softsign
func.func @softsign(%a: tensor<2x?xf32>) {
  %0 = top.softsign %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @gelu
// CHECK: top.gelu
func.func @gelu(%a: tensor<2x?xf32>) {
  %0 = top.gelu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @leaky_relu
// CHECK: top.leaky_relu
func.func @leaky_relu(%a: tensor<2x?xf32>) {
  %0 = top.leaky_relu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @elu
// CHECK: top.elu
func.func @elu(%a: tensor<2x?xf32>) {
  %0 = top.elu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @celu
// CHECK: top.celu
func.func @celu(%a: tensor<2x?xf32>) {
  %0 = top.celu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @thresholded_relu
// CHECK: top.thresholded_relu
func.func @thresholded_relu(%a: tensor<2x?xf32>) {
  %0 = top.thresholded_relu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @selu
// CHECK: top.selu
func.func @selu(%a: tensor<2x?xf32>) {
  %0 = top.selu %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @hard_sigmoid
// CHECK: top.hard_sigmoid
func.func @hard_sigmoid(%a: tensor<2x?xf32>) {
  %0 = top.hard_sigmoid %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @shrink
// CHECK: top.shrink
func.func @shrink(%a: tensor<2x?xf32>) {
  %0 = top.shrink %a : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// CHECK-LABEL: @is_inf
// CHECK: top.is_inf
func.func @is_inf(%a: tensor<4xf32>) {
  %0 = top.is_inf %a : (tensor<4xf32>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: @is_nan
// CHECK: top.is_nan
func.func @is_nan(%a: tensor<4xf32>) {
  %0 = top.is_nan %a : (tensor<4xf32>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: @clip
// CHECK: top.clip
func.func @clip(%a: tensor<4xf32>) {
  %0 = top.clip %a {lo = 0.0 : f64, hi = 6.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: @cast
// CHECK: top.cast
func.func @cast(%a: tensor<4xf32>) {
  %0 = top.cast %a {to = i64} : (tensor<4xf32>) -> tensor<4xi64>
  return
}

// CHECK-LABEL: @pow_of_other_type
// CHECK: top.pow
func.func @pow_of_other_type(%a: tensor<4xf32>, %b: tensor<i64>) {
  %0 = top.pow %a, %b : (tensor<4xf32>, tensor<i64>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: @bitcast
// CHECK: top.bitcast
func.func @bitcast(%a: tensor<4xf32>) {
  %0 = top.bitcast %a {to = i32} : (tensor<4xf32>) -> tensor<4xi32>
  return
}
