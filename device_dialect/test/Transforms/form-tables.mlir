// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-form-tables --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A ReLU of signed bytes: 0..127 stay, 128..255 (the negative ones) become 0.
// CHECK-LABEL: func.func @relu
// CHECK: %[[T:.*]] = top.constant dense<"0x000102030405{{[0-9A-F]*}}7E7F0000{{0*}}">{{.*}}tensor<256xi8>
// CHECK: %[[Y:.*]] = device.lut %arg0, %[[T]] {top.outputs = ["y"]} : (tensor<2x3xi8>, tensor<256xi8>) -> tensor<2x3xi8>{{.*}}"Relu_0"
// CHECK-NEXT: return %[[Y]]
func.func @relu(%x: tensor<2x3xi8>) -> tensor<2x3xi8> {
  %y = device.map(%x) {
  ^bb0(%a: i8):
    %zero = arith.constant 0 : i8
    %m = arith.maxsi %a, %zero : i8
    device.yield %m : i8
  } {top.outputs = ["y"]} : (tensor<2x3xi8>) -> tensor<2x3xi8> loc("Relu_0")
  return %y : tensor<2x3xi8>
}

// -----

// Several maps, one of which is read twice (x sigmoid(x)) and one of which has another reader and stays.
// CHECK-LABEL: func.func @diamond
// CHECK: %[[F:.*]] = device.map(%arg0)
// CHECK: device.lut %arg0
// CHECK-NOT: device.map
// CHECK: return %{{.*}}, %[[F]]
func.func @diamond(%x: tensor<5xui8>) -> (tensor<5xi8>, tensor<5xf32>) {
  %f = device.map(%x) {
  ^bb0(%a: i8):
    %r = arith.uitofp %a : i8 to f32
    device.yield %r : f32
  } : (tensor<5xui8>) -> tensor<5xf32>
  %g = device.map(%f) {
  ^bb0(%a: f32):
    %half = arith.constant 0.5 : f32
    %r = arith.mulf %a, %half : f32
    device.yield %r : f32
  } : (tensor<5xf32>) -> tensor<5xf32>
  %y = device.map(%g, %f) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.subf %a, %b : f32
    %i = arith.fptosi %r : f32 to i8
    device.yield %i : i8
  } : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi8>
  return %y, %f : tensor<5xi8>, tensor<5xf32>
}

// -----

// Two tensors of bytes, a broadcast byte, and a float do not become tables.
// CHECK-LABEL: func.func @others
// CHECK-NOT: device.lut
// CHECK: return
func.func @others(%x: tensor<5xi8>, %b: tensor<5xi8>, %one: tensor<1xi8>, %f: tensor<5xf32>)
    -> (tensor<5xi8>, tensor<5xi8>, tensor<5xi8>) {
  %0 = device.map(%x, %b) {
  ^bb0(%a: i8, %c: i8):
    %r = arith.addi %a, %c : i8
    device.yield %r : i8
  } : (tensor<5xi8>, tensor<5xi8>) -> tensor<5xi8>
  %1 = device.map(%one) {
  ^bb0(%a: i8):
    device.yield %a : i8
  } : (tensor<1xi8>) -> tensor<5xi8>
  %2 = device.map(%f) {
  ^bb0(%a: f32):
    %r = arith.fptosi %a : f32 to i8
    device.yield %r : i8
  } : (tensor<5xf32>) -> tensor<5xi8>
  return %0, %1, %2 : tensor<5xi8>, tensor<5xi8>, tensor<5xi8>
}

// -----

// The bytes may be constant.
// CHECK-LABEL: func.func @constant
// CHECK: device.lut
func.func @constant() -> tensor<3xi8> {
  %c = top.constant dense<[1, -2, 3]> : tensor<3xi8> : tensor<3xi8>
  %y = device.map(%c) {
  ^bb0(%a: i8):
    %m = arith.addi %a, %a : i8
    device.yield %m : i8
  } : (tensor<3xi8>) -> tensor<3xi8>
  return %y : tensor<3xi8>
}
