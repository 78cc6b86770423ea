// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt --mlir-print-op-generic %s | tessera-opt | FileCheck %s

// CHECK-LABEL: func.func @conv
// CHECK: device.conv %{{.*}}, %{{.*}} bias %{{.*}} extras(%{{.*}}) epilogue
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
// CHECK: device.yield %{{.*}} : f32
func.func @conv(%x: tensor<1x16x8x8xf32, #device.blocked<16>>, %w: tensor<32x16x3x3xf32>, %b: tensor<32xf32>,
                %r: tensor<1x32x8x8xf32, #device.blocked<16>>) -> tensor<1x32x8x8xf32, #device.blocked<16>> {
  %y = device.conv %x, %w bias %b extras(%r) epilogue {
  ^bb0(%acc: f32, %res: f32):
    %sum = arith.addf %acc, %res : f32
    %zero = arith.constant 0.0 : f32
    %relu = arith.maximumf %sum, %zero : f32
    device.yield %relu : f32
  } {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x16x8x8xf32, #device.blocked<16>>, tensor<32x16x3x3xf32>, tensor<32xf32>, tensor<1x32x8x8xf32, #device.blocked<16>>)
    -> tensor<1x32x8x8xf32, #device.blocked<16>>
  return %y : tensor<1x32x8x8xf32, #device.blocked<16>>
}

// CHECK-LABEL: func.func @pool_reduce_map
// CHECK: device.pool max
// CHECK: device.reduce sum %{{.*}} prologue
// CHECK: epilogue
// CHECK: device.map(%{{.*}})
func.func @pool_reduce_map(%x: tensor<1x8x8x8xf32>) -> tensor<1x8x1x1xf32> {
  %p = device.pool max %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x8x8x8xf32>) -> tensor<1x8x4x4xf32>
  %r = device.reduce sum %p prologue {
  ^bb0(%e: f32):
    %s = arith.mulf %e, %e : f32
    device.yield %s : f32
  } epilogue {
  ^bb0(%acc: f32):
    %n = arith.constant 6.250000e-02 : f32
    %m = arith.mulf %acc, %n : f32
    device.yield %m : f32
  } {axes = array<i64: 2, 3>} : (tensor<1x8x4x4xf32>) -> tensor<1x8x1x1xf32>
  %y = device.map (%r) {
  ^bb0(%e: f32):
    %s = math.sqrt %e : f32
    device.yield %s : f32
  } : (tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32>
  return %y : tensor<1x8x1x1xf32>
}

// CHECK-LABEL: func.func @moves
// CHECK: device.copy %{{.*}} {fill = 0.000000e+00 : f64, pieces = [#device.piece<source = 0, sizes = [3, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [1, 0], src_offsets = [0, 0], src_steps = [1, 1]>
// CHECK: device.reshape
func.func @moves(%x: tensor<2x3xf32>, %i: tensor<2xi64>) -> tensor<2x4xf32> {
  %y = device.copy %x {fill = 0.0 : f64, pieces = [#device.piece<source = 0, sizes = [3, 2], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [1, 0], src_offsets = [0, 0], src_steps = [1, 1]>]} : (tensor<2x3xf32>) -> tensor<4x2xf32>
  %r = device.reshape %y : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %g = device.gather %r, %i {axis = 0} : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %c = device.cumsum %g {axis = 1} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %v, %k = device.topk %c {axis = 1, k = 4} : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
  %u = device.custom %v, %k {opDomain = "test", opName = "Sort", opVersion = 1, opAttributes = "{}"} : (tensor<2x4xf32>, tensor<2x4xi64>) -> tensor<2x4xf32>
  return %u : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @boxes
// CHECK: device.non_max_suppression %{{.*}} {center = true, k = 5 : i64}
func.func @boxes(%b: tensor<2x9x4xf32>, %s: tensor<2x3x9xf32>, %m: tensor<i64>, %t: tensor<1xf32>) -> tensor<2x3x5xi64> {
  %y = device.non_max_suppression %b, %s, %m, %t, %t {k = 5, center = true}
    : (tensor<2x9x4xf32>, tensor<2x3x9xf32>, tensor<i64>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x3x5xi64>
  return %y : tensor<2x3x5xi64>
}

// CHECK-LABEL: func.func @sequence
// CHECK: device.recurrent %{{.*}}, %{{.*}} w %{{.*}} bias %{{.*}} {activations = ["Sigmoid", "Tanh", "Tanh"]
func.func @sequence(%x: tensor<5x1x3xf32>, %w: tensor<1x8x3xf32>, %r: tensor<1x8x2xf32>, %b: tensor<1x16xf32>) -> tensor<5x1x1x2xf32> {
  %y, %h, %c = device.recurrent %x, %r w %w bias %b {kind = "lstm", direction = "forward", hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh", "Tanh"]}
    : (tensor<5x1x3xf32>, tensor<1x8x2xf32>, tensor<1x8x3xf32>, tensor<1x16xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// CHECK-LABEL: func.func @sequence_of_sums
// CHECK: device.recurrent %{{.*}}, %{{.*}} bias %{{.*}} {activations = ["Sigmoid", "Tanh", "Sigmoid", "Tanh"]
func.func @sequence_of_sums(%x: tensor<5x1x12xf32>, %r: tensor<2x6x2xf32>, %b: tensor<2x6xf32>) -> tensor<5x2x1x2xf32> {
  %y, %h, %c = device.recurrent %x, %r bias %b {kind = "gru", direction = "bidirectional", hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh", "Sigmoid", "Tanh"]}
    : (tensor<5x1x12xf32>, tensor<2x6x2xf32>, tensor<2x6xf32>) -> (tensor<5x2x1x2xf32>, tensor<2x1x2xf32>, tensor<2x1x2xf32>)
  return %y : tensor<5x2x1x2xf32>
}

// CHECK-LABEL: func.func @conv_integers
// CHECK: device.conv %{{.*}}, %{{.*}} bias %{{.*}} extras(%{{.*}}) epilogue
// CHECK: padValue = 128 : i64
func.func @conv_integers(%x: tensor<1x3x8x8xui8>, %w: tensor<4x3x3x3xi8>, %b: tensor<4xi32>, %m: tensor<4x1x1xf32>) -> tensor<1x4x8x8xi8> {
  %y = device.conv %x, %w bias %b extras(%m) epilogue {
  ^bb0(%acc: i32, %scale: f32):
    %f = arith.sitofp %acc : i32 to f32
    %s = arith.mulf %f, %scale : f32
    %r = math.roundeven %s : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %l = arith.maximumf %r, %low : f32
    %h = arith.minimumf %l, %high : f32
    %i = arith.fptosi %h : f32 to i32
    %q = arith.trunci %i : i32 to i8
    device.yield %q : i8
  } {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, padValue = 128 : i64}
      : (tensor<1x3x8x8xui8>, tensor<4x3x3x3xi8>, tensor<4xi32>, tensor<4x1x1xf32>) -> tensor<1x4x8x8xi8>
  return %y : tensor<1x4x8x8xi8>
}
