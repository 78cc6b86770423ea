// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --convert-top-to-device --canonicalize --split-input-file | FileCheck %s

// Per-channel weights: factors 0.5 * 0.25 / 2 and 0.5 * 0.5 / 2; bias 1 / 0.125 - 100 (1 + 2) and -1 / 0.25 - 100 (-3 + 4).
// Padding holds the zero point. Clamp: the zero point (ReLU) to 6 / 2 - 10 (clip).
// CHECK-LABEL: func.func @conv
// CHECK-DAG: %[[W:.*]] = top.constant {{.*}} : tensor<2x2x1x1xi8>
// CHECK-DAG: %[[B:.*]] = top.constant dense<[-292, -104]> : tensor<2xi32>
// CHECK-DAG: %[[M:.*]] = top.constant dense<{{.*}}6.250000e-02{{.*}}1.250000e-01{{.*}}> : tensor<2x1x1xf32>
// CHECK: %[[Y:.*]] = device.conv %arg0, %[[W]] bias %[[B]] extras(%[[M]]) epilogue {
// CHECK-NEXT: ^bb0(%[[S:.*]]: i32, %[[F:.*]]: f32):
// CHECK-DAG: %[[LOW:.*]] = arith.constant -1.000000e+01 : f32
// CHECK-DAG: %[[HIGH:.*]] = arith.constant -7.000000e+00 : f32
// CHECK: arith.sitofp %[[S]] : i32 to f32
// CHECK-NEXT: arith.mulf %{{.*}}, %[[F]] : f32
// CHECK-NEXT: math.roundeven
// CHECK-NEXT: arith.addf %{{.*}}, %[[LOW]]
// CHECK-NEXT: arith.maximumf %{{.*}}, %[[LOW]]
// CHECK-NEXT: arith.minimumf %{{.*}}, %[[HIGH]]
// CHECK-NEXT: arith.fptosi %{{.*}} : f32 to i32
// CHECK-NEXT: arith.trunci %{{.*}} : i32 to i8
// CHECK: padValue = 100 : i64
// CHECK-SAME: top.outputs = ["y"]
// CHECK-NEXT: return %[[Y]]
func.func @conv(%x: tensor<1x2x4x4xui8>) -> tensor<1x2x5x5xi8> {
  %sx = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %zx = top.constant dense<100> : tensor<ui8> : tensor<ui8>
  %w = top.constant dense<[[[[1]], [[2]]], [[[-3]], [[4]]]]> : tensor<2x2x1x1xi8> : tensor<2x2x1x1xi8>
  %sw = top.constant dense<[[[[0.25]]], [[[0.5]]]]> : tensor<2x1x1x1xf32> : tensor<2x1x1x1xf32>
  %zw = top.constant dense<0> : tensor<2x1x1x1xi8> : tensor<2x1x1x1xi8>
  %b = top.constant dense<[1.0, -1.0]> : tensor<2xf32> : tensor<2xf32>
  %sy = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %zy = top.constant dense<-10> : tensor<i8> : tensor<i8>
  %xf = top.dequantize %x, %sx, %zx : (tensor<1x2x4x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x4xf32>
  %wf = top.dequantize %w, %sw, %zw : (tensor<2x2x1x1xi8>, tensor<2x1x1x1xf32>, tensor<2x1x1x1xi8>) -> tensor<2x2x1x1xf32>
  %c = top.conv %xf, %wf, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 1, 1, 0>, dilations = array<i64: 1, 1>, relu = true} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>, tensor<2xf32>) -> tensor<1x2x5x5xf32>
  %clip = top.clip %c {lo = -1.0 : f64, hi = 6.0 : f64} : (tensor<1x2x5x5xf32>) -> tensor<1x2x5x5xf32>
  %y = top.quantize %clip, %sy, %zy {top.outputs = ["y"]} : (tensor<1x2x5x5xf32>, tensor<f32>, tensor<i8>) -> tensor<1x2x5x5xi8>
  return %y : tensor<1x2x5x5xi8>
}

// -----

// The zero point of unsigned weights is subtracted; without a quantize the result is f32.
// CHECK-LABEL: func.func @matmul
// CHECK: %[[W:.*]] = top.constant {{.*}} : tensor<2x2xi8>
// CHECK: device.matmul %arg0, %[[W]] epilogue {
// CHECK-NEXT: ^bb0(%[[S:.*]]: i32):
// CHECK-NEXT: %[[F:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-NEXT: %[[R:.*]] = arith.sitofp %[[S]] : i32 to f32
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[R]], %[[F]] : f32
// CHECK-NEXT: device.yield %[[Y]] : f32
// CHECK: (tensor<3x2xi8>, tensor<2x2xi8>) -> tensor<3x2xf32>
func.func @matmul(%x: tensor<3x2xi8>) -> tensor<3x2xf32> {
  %sx = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %zx = top.constant dense<0> : tensor<i8> : tensor<i8>
  %w = top.constant dense<[[128, 2], [255, 130]]> : tensor<2x2xui8> : tensor<2x2xui8>
  %sw = top.constant dense<0.25> : tensor<f32> : tensor<f32>
  %zw = top.constant dense<128> : tensor<ui8> : tensor<ui8>
  %xf = top.dequantize %x, %sx, %zx : (tensor<3x2xi8>, tensor<f32>, tensor<i8>) -> tensor<3x2xf32>
  %wf = top.dequantize %w, %sw, %zw : (tensor<2x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x2xf32>
  %y = top.matmul %xf, %wf : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// Two activations: the sums of rows and columns correct the zero points 3 and 130 (2 after the shift to i8); 2 * 3 * 2 = 12.
// CHECK-LABEL: func.func @activations
// CHECK: %[[B:.*]] = device.map(%arg1)
// CHECK: arith.xori
// CHECK: (tensor<2x5xui8>) -> tensor<2x5xi8>
// CHECK: %[[COLUMNS:.*]] = device.reduce sum %[[B]] prologue
// CHECK: arith.constant -3 : i32
// CHECK: axes = array<i64: 0>
// CHECK-SAME: -> tensor<1x5xi32>
// CHECK: %[[ROWS:.*]] = device.reduce sum %arg0 prologue
// CHECK: arith.constant -2 : i32
// CHECK: axes = array<i64: 1>
// CHECK-SAME: -> tensor<3x1xi32>
// CHECK: device.matmul %arg0, %[[B]] extras(%[[COLUMNS]], %[[ROWS]]) epilogue {
// CHECK-NEXT: ^bb0(%[[S:.*]]: i32, %[[C:.*]]: i32, %[[R:.*]]: i32):
// CHECK-DAG: %[[BOTH:.*]] = arith.constant 12 : i32
// CHECK: %[[S1:.*]] = arith.addi %[[S]], %[[C]]
// CHECK-NEXT: %[[S2:.*]] = arith.addi %[[S1]], %[[R]]
// CHECK-NEXT: arith.addi %[[S2]], %[[BOTH]]
func.func @activations(%a: tensor<3x2xi8>, %b: tensor<2x5xui8>) -> tensor<3x5xui8> {
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %za = top.constant dense<3> : tensor<i8> : tensor<i8>
  %zb = top.constant dense<130> : tensor<ui8> : tensor<ui8>
  %af = top.dequantize %a, %s, %za : (tensor<3x2xi8>, tensor<f32>, tensor<i8>) -> tensor<3x2xf32>
  %bf = top.dequantize %b, %s, %zb : (tensor<2x5xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x5xf32>
  %c = top.matmul %af, %bf : (tensor<3x2xf32>, tensor<2x5xf32>) -> tensor<3x5xf32>
  %y = top.quantize %c, %s, %zb : (tensor<3x5xf32>, tensor<f32>, tensor<ui8>) -> tensor<3x5xui8>
  return %y : tensor<3x5xui8>
}

// -----

// Copies move integers: pads hold the zero point, equal parameters cancel, others are requantised before the
// concatenation.
// CHECK-LABEL: func.func @moves
// CHECK-NOT: f32, {{.*}}device.copy
// CHECK: %[[P:.*]] = device.pool max %arg0
// CHECK-SAME: -> tensor<1x2x2x2xi8>
// CHECK: %[[PAD:.*]] = device.copy %[[P]]
// CHECK-SAME: fill = 7.0
// CHECK-SAME: -> tensor<1x2x2x3xi8>
// CHECK: %[[Q:.*]] = device.map
// CHECK: -> tensor<1x1x2x3xi8>
// CHECK: device.copy %[[PAD]], %[[Q]]
// CHECK-SAME: -> tensor<1x3x2x3xi8>
func.func @moves(%x: tensor<1x2x4x4xi8>, %u: tensor<1x1x2x3xi8>) -> tensor<1x3x2x3xi8> {
  %s = top.constant dense<0.5> : tensor<1xf32> : tensor<1xf32>
  %z = top.constant dense<7> : tensor<1xi8> : tensor<1xi8>
  %s2 = top.constant dense<0.25> : tensor<f32> : tensor<f32>
  %f = top.dequantize %x, %s, %z : (tensor<1x2x4x4xi8>, tensor<1xf32>, tensor<1xi8>) -> tensor<1x2x4x4xf32>
  %g = top.dequantize %u, %s2, %z : (tensor<1x1x2x3xi8>, tensor<f32>, tensor<1xi8>) -> tensor<1x1x2x3xf32>
  %m = top.max_pool %f {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %p = top.pad %m {pads = array<i64: 0, 0, 0, 0, 0, 0, 0, 1>, mode = 0 : i32} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x3xf32>
  %c = top.concat %p, %g {axis = 1 : i64} : (tensor<1x2x2x3xf32>, tensor<1x1x2x3xf32>) -> tensor<1x3x2x3xf32>
  %y = top.quantize %c, %s, %z : (tensor<1x3x2x3xf32>, tensor<1xf32>, tensor<1xi8>) -> tensor<1x3x2x3xi8>
  return %y : tensor<1x3x2x3xi8>
}

// -----

// A mean: the sum minus 4 zero points, times 0.5 / 4 / 0.5.
// CHECK-LABEL: func.func @mean
// CHECK: device.reduce sum %arg0 prologue
// CHECK: arith.extsi
// CHECK: epilogue
// CHECK-DAG: arith.constant 2.500000e-01 : f32
// CHECK-DAG: arith.constant {{-?}}28 : i32
// CHECK: (tensor<1x2x2x2xi8>) -> tensor<1x2x1x1xi8>
func.func @mean(%x: tensor<1x2x2x2xi8>) -> tensor<1x2x1x1xi8> {
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %z = top.constant dense<7> : tensor<i8> : tensor<i8>
  %f = top.dequantize %x, %s, %z : (tensor<1x2x2x2xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2x2x2xf32>
  %m = top.reduce %f {kind = 1 : i32, axes = array<i64: 2, 3>} : (tensor<1x2x2x2xf32>) -> tensor<1x2x1x1xf32>
  %y = top.quantize %m, %s, %z : (tensor<1x2x1x1xf32>, tensor<f32>, tensor<i8>) -> tensor<1x2x1x1xi8>
  return %y : tensor<1x2x1x1xi8>
}

// -----

// Unsigned 16-bit inputs stay floats; their integer weights stay integers with scales.
// CHECK-LABEL: func.func @floats
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{\[\[}}1, 2{{\]\]}}> : tensor<1x2xi8>
// CHECK-DAG: %[[S:.*]] = top.constant dense<2.500000e-01> : tensor<1x2xf32>
// CHECK: device.map(%arg0)
// CHECK: device.matmul %{{.*}}, %[[W]] scales %[[S]]
func.func @floats(%x: tensor<3x1xui16>) -> tensor<3x2xf32> {
  %s = top.constant dense<0.25> : tensor<f32> : tensor<f32>
  %z16 = top.constant dense<3> : tensor<ui16> : tensor<ui16>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %w = top.constant dense<[[1, 2]]> : tensor<1x2xi8> : tensor<1x2xi8>
  %xf = top.dequantize %x, %s, %z16 : (tensor<3x1xui16>, tensor<f32>, tensor<ui16>) -> tensor<3x1xf32>
  %wf = top.dequantize %w, %s, %z : (tensor<1x2xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2xf32>
  %y = top.matmul %xf, %wf : (tensor<3x1xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// i16 with a zero point: the bias corrects for it, -3 (1) and -3 (2).
// CHECK-LABEL: func.func @words_with_a_zero_point
// CHECK-DAG: %[[B:.*]] = top.constant dense<[-3, -6]> : tensor<2xi32>
// CHECK: device.matmul %arg0, %{{.*}} bias %[[B]]
// CHECK: sumBound = 65542 : i64
func.func @words_with_a_zero_point(%x: tensor<3x1xi16>) -> tensor<3x2xf32> {
  %s = top.constant dense<0.25> : tensor<f32> : tensor<f32>
  %z16 = top.constant dense<3> : tensor<i16> : tensor<i16>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %w = top.constant dense<[[1, 2]]> : tensor<1x2xi8> : tensor<1x2xi8>
  %xf = top.dequantize %x, %s, %z16 : (tensor<3x1xi16>, tensor<f32>, tensor<i16>) -> tensor<3x1xf32>
  %wf = top.dequantize %w, %s, %z : (tensor<1x2xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2xf32>
  %y = top.matmul %xf, %wf : (tensor<3x1xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// ui16 between ops becomes i16 minus 32768, even if it is also returned as ui16; borders hold the zero point, by a
// copy.
// CHECK-LABEL: func.func @unsigned_words
// CHECK: device.copy
// CHECK-SAME: fill = 2.320000e+02
// CHECK-SAME: (tensor<1x1x2x2xi16>) -> tensor<1x1x4x4xi16>
// CHECK: pads = array<i64: 0, 0, 0, 0>
// CHECK-SAME: (tensor<1x1x4x4xi16>, tensor<1x1x3x3xi8>, tensor<1xi32>) -> tensor<1x1x2x2xf32>
func.func @unsigned_words(%x: tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xui16>) {
  %s = top.constant dense<0.25> : tensor<f32> : tensor<f32>
  %z16 = top.constant dense<33000> : tensor<ui16> : tensor<ui16>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %w = top.constant dense<1> : tensor<1x1x3x3xi8> : tensor<1x1x3x3xi8>
  %q = top.quantize %x, %s, %z16 : (tensor<1x1x2x2xf32>, tensor<f32>, tensor<ui16>) -> tensor<1x1x2x2xui16>
  %xf = top.dequantize %q, %s, %z16 : (tensor<1x1x2x2xui16>, tensor<f32>, tensor<ui16>) -> tensor<1x1x2x2xf32>
  %wf = top.dequantize %w, %s, %z : (tensor<1x1x3x3xi8>, tensor<f32>, tensor<i8>) -> tensor<1x1x3x3xf32>
  %y = top.conv %xf, %wf {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x2x2xf32>
  return %y, %q : tensor<1x1x2x2xf32>, tensor<1x1x2x2xui16>
}

// -----

// Weights that are transposed before use, with one scale per output column.
// CHECK-LABEL: func.func @transposed
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{.*}}1, 3{{.*}}2, 4{{.*}}> : tensor<2x2xi8>
// CHECK-DAG: %[[M:.*]] = top.constant dense<[1.250000e-01, 2.500000e-01]> : tensor<2xf32>
// CHECK: device.matmul %arg0, %[[W]] extras(%[[M]])
func.func @transposed(%x: tensor<3x2xi8>) -> tensor<3x2xf32> {
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %w = top.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi8> : tensor<2x2xi8>
  %sw = top.constant dense<[[0.25], [0.5]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %zw = top.constant dense<0> : tensor<2x1xi8> : tensor<2x1xi8>
  %xf = top.dequantize %x, %s, %z : (tensor<3x2xi8>, tensor<f32>, tensor<i8>) -> tensor<3x2xf32>
  %wf = top.dequantize %w, %sw, %zw : (tensor<2x2xi8>, tensor<2x1xf32>, tensor<2x1xi8>) -> tensor<2x2xf32>
  %t = top.transpose %wf {perm = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = top.matmul %xf, %t : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// i16 x with 20000 levels and i16 results with 9000: the sums reach at most 20000 (|-3| + |4|) + 20, where 20 is the
// bias 1 / 0.05. The clamp is that of the levels.
// CHECK-LABEL: func.func @words
// CHECK: device.conv %{{.*}}, %{{.*}} bias %{{.*}} epilogue {
// CHECK-DAG: %[[LOW:.*]] = arith.constant -9.000000e+03 : f32
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 9.000000e+03 : f32
// CHECK: arith.maximumf %{{.*}}, %[[LOW]]
// CHECK-NEXT: arith.minimumf %{{.*}}, %[[HIGH]]
// CHECK-NEXT: arith.fptosi %{{.*}} : f32 to i32
// CHECK-NEXT: arith.trunci %{{.*}} : i32 to i16
// CHECK: sumBound = 140020 : i64
// CHECK-SAME: (tensor<1x2x4x4xi16>, tensor<2x2x1x1xi8>, tensor<2xi32>) -> tensor<1x2x4x4xi16>
func.func @words(%x: tensor<1x2x2x8xi16>) -> tensor<1x2x4x4xi16> {
  %sx = top.constant dense<0.1> : tensor<f32> : tensor<f32>
  %z = top.constant dense<0> : tensor<i16> : tensor<i16>
  %w = top.constant dense<[[[[1]], [[2]]], [[[-3]], [[4]]]]> : tensor<2x2x1x1xi8> : tensor<2x2x1x1xi8>
  %sw = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %zw = top.constant dense<0> : tensor<i8> : tensor<i8>
  %b = top.constant dense<[1.0, -1.0]> : tensor<2xf32> : tensor<2xf32>
  %sy = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %xf = top.dequantize %x, %sx, %z {levels = 20000 : i64} : (tensor<1x2x2x8xi16>, tensor<f32>, tensor<i16>) -> tensor<1x2x2x8xf32>
  %r = top.reshape %xf {shape = array<i64: 1, 2, 4, 4>} : (tensor<1x2x2x8xf32>) -> tensor<1x2x4x4xf32>
  %wf = top.dequantize %w, %sw, %zw : (tensor<2x2x1x1xi8>, tensor<f32>, tensor<i8>) -> tensor<2x2x1x1xf32>
  %c = top.conv %r, %wf, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4x4xf32>
  %y = top.quantize %c, %sy, %z {levels = 9000 : i64} : (tensor<1x2x4x4xf32>, tensor<f32>, tensor<i16>) -> tensor<1x2x4x4xi16>
  return %y : tensor<1x2x4x4xi16>
}

// -----

// Rows of weights that share a scale: groups of two rows, then of one; the rest of the reshaped constant is cropped.
// CHECK-LABEL: func.func @groups
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{.*}}1, 2{{.*}}3, 4{{.*}}5, 6{{.*}}> : tensor<3x2xi8>
// CHECK-DAG: %[[S:.*]] = top.constant dense<{{.*}}5.000000e-01, 2.500000e-01{{.*}}1.000000e+00, 2.000000e+00{{.*}}> : tensor<2x2xf32>
// CHECK: device.matmul %arg0, %[[W]] scales %[[S]] {weightGroup = 2 : i64}
func.func @groups(%x: tensor<3x3xf32>) -> tensor<3x2xf32> {
  %w = top.constant dense<[[[1, 2], [3, 4]], [[5, 6], [0, 0]]]> : tensor<2x2x2xi8> : tensor<2x2x2xi8>
  %s = top.constant dense<[[[0.5, 0.25]], [[1.0, 2.0]]]> : tensor<2x1x2xf32> : tensor<2x1x2xf32>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %d = top.dequantize %w, %s, %z : (tensor<2x2x2xi8>, tensor<2x1x2xf32>, tensor<i8>) -> tensor<2x2x2xf32>
  %r = top.reshape %d {shape = array<i64: 4, 2>} : (tensor<2x2x2xf32>) -> tensor<4x2xf32>
  %c = top.slice %r {starts = array<i64: 0, 0>, sizes = array<i64: 3, 2>, steps = array<i64: 1, 1>} : (tensor<4x2xf32>) -> tensor<3x2xf32>
  %y = top.matmul %x, %c : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

// Sums that might overflow are computed in float.
// CHECK-LABEL: func.func @too_many_levels
// CHECK-SAME: device.exact_except = ["device.conv"]
// CHECK: = device.conv
// CHECK-SAME: -> tensor<1x1x1x1xf32>
func.func @too_many_levels(%x: tensor<1x600x1x1xi16>) -> tensor<1x1x1x1xf32> {
  %sx = top.constant dense<0.1> : tensor<f32> : tensor<f32>
  %z = top.constant dense<0> : tensor<i16> : tensor<i16>
  %w = top.constant dense<127> : tensor<1x600x1x1xi8> : tensor<1x600x1x1xi8>
  %sw = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %zw = top.constant dense<0> : tensor<i8> : tensor<i8>
  %xf = top.dequantize %x, %sx, %z : (tensor<1x600x1x1xi16>, tensor<f32>, tensor<i16>) -> tensor<1x600x1x1xf32>
  %wf = top.dequantize %w, %sw, %zw : (tensor<1x600x1x1xi8>, tensor<f32>, tensor<i8>) -> tensor<1x600x1x1xf32>
  %c = top.conv %xf, %wf {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x600x1x1xf32>, tensor<1x600x1x1xf32>) -> tensor<1x1x1x1xf32>
  return %c : tensor<1x1x1x1xf32>
}

// -----

// Rows of a table with one scale each are looked up as integers, together with their scales.
// CHECK-LABEL: func.func @table
// CHECK-DAG: %[[Q:.*]] = device.gather {{.*}} -> tensor<2x3xi8>
// CHECK-DAG: %[[S:.*]] = device.gather {{.*}} -> tensor<2x1xf32>
// CHECK: device.map(%[[Q]], %[[S]])
func.func @table(%i: tensor<2xi64>) -> tensor<2x3xf32> {
  %w = top.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8> : tensor<2x3xi8>
  %s = top.constant dense<[[0.5], [0.25]]> : tensor<2x1xf32> : tensor<2x1xf32>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %d = top.dequantize %w, %s, %z : (tensor<2x3xi8>, tensor<2x1xf32>, tensor<i8>) -> tensor<2x3xf32>
  %y = top.gather %d, %i {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

// 16-bit floats: a matmul reads them and rounds its result, a pooling moves them, the sum after it is a separate map.
// CHECK-LABEL: func.func @narrow
// CHECK: device.pool max %arg0
// CHECK-SAME: (tensor<1x2x4x4xbf16>) -> tensor<1x2x2x2xbf16>
// CHECK: device.conv
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// CHECK: (tensor<1x2x2x2xbf16>, tensor<2x2x1x1xbf16>) -> tensor<1x2x2x2xbf16>
// CHECK: device.softmax {{.*}} tensor<1x2x2x2xf32>
func.func @narrow(%x: tensor<1x2x4x4xbf16>) -> tensor<1x2x2x2xf32> {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xbf16> : tensor<2x2x1x1xbf16>
  %wf = top.cast %w {to = f32} : (tensor<2x2x1x1xbf16>) -> tensor<2x2x1x1xf32>
  %xf = top.cast %x {to = f32} : (tensor<1x2x4x4xbf16>) -> tensor<1x2x4x4xf32>
  %p = top.max_pool %xf {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, ceilMode = false} : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  %c = top.conv %p, %wf {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x2x2xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x2x2xf32>
  %n = top.cast %c {to = bf16} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xbf16>
  %f = top.cast %n {to = f32} : (tensor<1x2x2x2xbf16>) -> tensor<1x2x2x2xf32>
  %y = top.softmax %f {axis = 1 : i64} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %y : tensor<1x2x2x2xf32>
}

// -----

// The bias of a convolution of bytes joins the correction for the zero point: 10 - 5 * 3 and 20 + 5 * 2.
// CHECK-LABEL: @integer_bias
// CHECK-DAG: top.constant dense<[-5, 30]> : tensor<2xi32>
// CHECK: device.conv
// CHECK: (tensor<1x1x2x2xui8>, tensor<2x1x1x1xi8>, tensor<2xi32>) -> tensor<1x2x2x2xi32>
func.func @integer_bias(%x: tensor<1x1x2x2xui8>) -> tensor<1x2x2x2xi32> {
  %w = top.constant dense<[[[[3]]], [[[-2]]]]> : tensor<2x1x1x1xi32> : tensor<2x1x1x1xi32>
  %b = top.constant dense<[10, 20]> : tensor<2xi32> : tensor<2xi32>
  %z = top.constant dense<5> : tensor<i32> : tensor<i32>
  %i = top.cast %x {to = i32} : (tensor<1x1x2x2xui8>) -> tensor<1x1x2x2xi32>
  %c = top.sub %i, %z : (tensor<1x1x2x2xi32>, tensor<i32>) -> tensor<1x1x2x2xi32>
  %y = top.conv %c, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x2x2xi32>, tensor<2x1x1x1xi32>, tensor<2xi32>) -> tensor<1x2x2x2xi32>
  return %y : tensor<1x2x2x2xi32>
}
