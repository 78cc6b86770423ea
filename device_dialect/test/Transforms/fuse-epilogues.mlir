// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-fuse-epilogues --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// An activation after a convolution: the fused op has the name of the activation and the locations of both.
// CHECK-LABEL: func.func @activation
// CHECK: %[[Y:.*]] = device.conv %arg0, %arg1 epilogue {
// CHECK-NEXT: ^bb0(%[[A:[^:]*]]: f32
// CHECK-NEXT: %[[C:.*]] = arith.constant 0.000000e+00
// CHECK-NEXT: %[[M:.*]] = arith.maximumf %[[A]], %[[C]]
// CHECK-NEXT: device.yield %[[M]]
// CHECK: top.outputs = ["act"]
// CHECK-SAME: loc(fused["Conv_1", "Relu_2"])
// CHECK-NEXT: return %[[Y]]
func.func @activation(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32> {
  %c = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["sum"]} : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32> loc("Conv_1")
  %y = device.map(%c) {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %a, %zero : f32
    device.yield %m : f32
  } {top.outputs = ["act"]} : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> loc("Relu_2")
  return %y : tensor<1x16x8x8xf32>
}

// -----

// SiLU in two maps, then a residual: all of it goes into the later of the two convolutions, which stays behind the
// other.
// CHECK-LABEL: func.func @residual
// CHECK: %[[FIRST:.*]] = device.conv %arg0, %arg1
// CHECK-NOT: epilogue {
// CHECK: %[[Y:.*]] = device.conv %[[FIRST]], %arg1 extras(%[[FIRST]]) epilogue {
// CHECK-NEXT: ^bb0(%[[A:[^:]*]]: f32 loc({{.*}}), %[[R:[^:]*]]: f32
// CHECK: math.exp
// CHECK: %[[S:.*]] = arith.mulf
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[R]], %[[S]]
// CHECK-NEXT: device.yield %[[T]]
// CHECK-NOT: device.map
func.func @residual(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32> {
  %c0 = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %c1 = device.conv %c0, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %s = device.map(%c1) {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %one, %d : f32
    device.yield %q : f32
  } : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %m = device.map(%c1, %s) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    device.yield %p : f32
  } : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %y = device.map(%c0, %m) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.addf %a, %b : f32
    device.yield %p : f32
  } : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %y : tensor<1x16x8x8xf32>
}

// -----

// Not fused: the producer's result has another reader; a convolution cannot read an operand along the columns.
// CHECK-LABEL: func.func @not_fused
// CHECK: device.conv
// CHECK-NOT: epilogue {
// CHECK: device.map
// CHECK: device.conv
// CHECK-NOT: epilogue {
// CHECK: device.map
func.func @not_fused(%x: tensor<1x16x8x8xf32>, %w: tensor<16x16x1x1xf32>, %r: tensor<8xf32>) -> (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) {
  %c = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %y = device.map(%c) {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    device.yield %n : f32
  } : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %d = device.conv %y, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<1x16x8x8xf32>
  %z = device.map(%d, %r) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.addf %a, %b : f32
    device.yield %n : f32
  } : (tensor<1x16x8x8xf32>, tensor<8xf32>) -> tensor<1x16x8x8xf32>
  return %c, %y, %z : tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>
}

// -----

// A map after a reshape of a matmul is computed before the reshape.
// CHECK-LABEL: func.func @over_reshape
// CHECK: %[[P:.*]] = device.matmul %arg0, %arg1 epilogue
// CHECK: %[[Y:.*]] = device.reshape %[[P]] {top.outputs = ["y"]}
// CHECK: return %[[Y]]
func.func @over_reshape(%a: tensor<6x4xf32>, %b: tensor<4x8xf32>) -> tensor<2x3x8xf32> {
  %p = device.matmul %a, %b : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %r = device.reshape %p : (tensor<6x8xf32>) -> tensor<2x3x8xf32>
  %y = device.map(%r) {
  ^bb0(%e: f32):
    %n = math.absf %e : f32
    device.yield %n : f32
  } {top.outputs = ["y"]} : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// A cheap map with two maps as users is computed in both; an expensive one is not.
// CHECK-LABEL: func.func @repeated
// CHECK: %[[E:.*]] = device.map(%arg0)
// CHECK: math.exp
// CHECK: device.map(%[[E]])
// CHECK: arith.negf
// CHECK: arith.addf
// CHECK: device.map(%[[E]])
// CHECK: arith.negf
// CHECK: arith.mulf
// CHECK-NOT: device.map
func.func @repeated(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %e = device.map(%x) {
  ^bb0(%a: f32):
    %v = math.exp %a : f32
    device.yield %v : f32
  } : (tensor<64xf32>) -> tensor<64xf32>
  %n = device.map(%e) {
  ^bb0(%a: f32):
    %v = arith.negf %a : f32
    device.yield %v : f32
  } : (tensor<64xf32>) -> tensor<64xf32>
  %y = device.map(%n, %e) {
  ^bb0(%a: f32, %b: f32):
    %v = arith.addf %a, %b : f32
    device.yield %v : f32
  } : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %z = device.map(%n) {
  ^bb0(%a: f32):
    %v = arith.mulf %a, %a : f32
    device.yield %v : f32
  } : (tensor<64xf32>) -> tensor<64xf32>
  return %y, %z : tensor<64xf32>, tensor<64xf32>
}

// -----

// A broadcast result is not computed again for every element.
// CHECK-LABEL: func.func @broadcast
// CHECK-COUNT-2: device.map
func.func @broadcast(%x: tensor<16x1xf32>, %z: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %n = device.map(%x) {
  ^bb0(%a: f32):
    %v = arith.negf %a : f32
    device.yield %v : f32
  } : (tensor<16x1xf32>) -> tensor<16x1xf32>
  %y = device.map(%n, %z) {
  ^bb0(%a: f32, %b: f32):
    %v = arith.addf %a, %b : f32
    device.yield %v : f32
  } : (tensor<16x1xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// -----

// A quantisation after an integer sum: the type of the result changes with it.
// CHECK-LABEL: func.func @integers
// CHECK: %[[Y:.*]] = device.matmul %arg0, %arg1 epilogue {
// CHECK-NEXT: ^bb0(%{{.*}}: i32
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: arith.fptosi
// CHECK: (tensor<3x4xi8>, tensor<4x5xi8>) -> tensor<3x5xi8>
// CHECK-NEXT: return %[[Y]]
func.func @integers(%a: tensor<3x4xi8>, %b: tensor<4x5xi8>) -> tensor<3x5xi8> {
  %f = device.matmul %a, %b epilogue {
  ^bb0(%acc: i32):
    %r = arith.sitofp %acc : i32 to f32
    device.yield %r : f32
  } : (tensor<3x4xi8>, tensor<4x5xi8>) -> tensor<3x5xf32>
  %y = device.map(%f) {
  ^bb0(%v: f32):
    %i = arith.fptosi %v : f32 to i8
    device.yield %i : i8
  } : (tensor<3x5xf32>) -> tensor<3x5xi8>
  return %y : tensor<3x5xi8>
}

// -----

// The epilogue reads the bytes of a residual, not its dequantised floats.
// CHECK-LABEL: func.func @residual
// CHECK-NOT: device.map
// CHECK: device.conv %arg0, %arg1 extras(%arg2) epilogue {
// CHECK-NEXT: ^bb0(%{{.*}}: i32{{.*}}, %{{.*}}: i8
// CHECK-NOT: device.map
// CHECK: return
func.func @residual(%x: tensor<1x16x8x8xi8>, %w: tensor<16x16x1x1xi8>, %r: tensor<1x16x8x8xi8>) -> tensor<1x16x8x8xf32> {
  %f = device.map(%r) {
  ^bb0(%a: i8):
    %v = arith.sitofp %a : i8 to f32
    device.yield %v : f32
  } : (tensor<1x16x8x8xi8>) -> tensor<1x16x8x8xf32>
  %c = device.conv %x, %w epilogue {
  ^bb0(%acc: i32):
    %v = arith.sitofp %acc : i32 to f32
    device.yield %v : f32
  } {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xi8>, tensor<16x16x1x1xi8>) -> tensor<1x16x8x8xf32>
  %y = device.map(%c, %f) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    device.yield %s : f32
  } : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %y : tensor<1x16x8x8xf32>
}

// -----

// Likewise if a convolution computes the residual: bytes pass between the two, not floats.
// CHECK-LABEL: func.func @shortcut
// CHECK: device.conv %arg0, %arg1 epilogue
// CHECK: -> tensor<1x16x8x8xi8>
// CHECK: device.conv %arg0, %arg1 extras({{.*}}) epilogue {
// CHECK-NEXT: ^bb0(%{{.*}}: i32{{.*}}, %{{.*}}: i8
// CHECK-NOT: device.map
func.func @shortcut(%x: tensor<1x16x8x8xi8>, %w: tensor<16x16x1x1xi8>) -> tensor<1x16x8x8xf32> {
  %r = device.conv %x, %w epilogue {
  ^bb0(%acc: i32):
    %v = arith.trunci %acc : i32 to i8
    device.yield %v : i8
  } {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xi8>, tensor<16x16x1x1xi8>) -> tensor<1x16x8x8xi8>
  %f = device.map(%r) {
  ^bb0(%a: i8):
    %v = arith.sitofp %a : i8 to f32
    device.yield %v : f32
  } : (tensor<1x16x8x8xi8>) -> tensor<1x16x8x8xf32>
  %c = device.conv %x, %w epilogue {
  ^bb0(%acc: i32):
    %v = arith.sitofp %acc : i32 to f32
    device.yield %v : f32
  } {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xi8>, tensor<16x16x1x1xi8>) -> tensor<1x16x8x8xf32>
  %y = device.map(%c, %f) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    device.yield %s : f32
  } : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %y : tensor<1x16x8x8xf32>
}
