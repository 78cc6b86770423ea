// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-fuse-epilogues=into-rows=true | FileCheck %s --check-prefixes=CHECK,ROWS
// RUN: tessera-opt %s --device-fuse-epilogues="into-rows=true integer-attention=true" | FileCheck %s --check-prefix=INTEGER
// RUN: tessera-opt %s --device-fuse-epilogues | FileCheck %s --check-prefixes=CHECK,NONE

// With into-rows, a map that is the only reader of a norm's result becomes its epilogue; with another reader it does
// not.
// CHECK-LABEL: func.func @norms
// ROWS: %[[Y:.*]] = device.norm %arg0 scale %arg1 epilogue {
// ROWS-NEXT: ^bb0(%[[A:.*]]: f32):
// ROWS: device.yield %{{.*}} : i8
// ROWS: -> tensor<2x3xi8>
// ROWS: %[[Z:.*]] = device.norm %arg0 {
// ROWS-NEXT: device.map(%[[Z]], %arg0)
// NONE-COUNT-2: device.map
func.func @norms(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> (tensor<2x3xi8>, tensor<2x3xf32>) {
  %n = device.norm %x scale %s {axis = 1, epsilon = 1.0e-5} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %y = device.map(%n) {
  ^bb0(%a: f32):
    %q = arith.fptosi %a : f32 to i8
    device.yield %q : i8
  } : (tensor<2x3xf32>) -> tensor<2x3xi8>
  %m = device.norm %x {axis = 1, epsilon = 1.0e-5} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %z = device.map(%m, %x) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %a, %b : f32
    device.yield %q : f32
  } : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y, %z : tensor<2x3xi8>, tensor<2x3xf32>
}

// The norm rounds its stored result, which a map in the epilogue would not see.
// CHECK-LABEL: func.func @rounded
// CHECK: device.norm
// CHECK-NEXT: device.map
func.func @rounded(%x: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %n = device.norm %x {axis = 1, epsilon = 1.0e-5} : (tensor<2x3xf16>) -> tensor<2x3xf16>
  %y = device.map(%n) {
  ^bb0(%a: f16):
    %w = arith.extf %a : f16 to f32
    %s = arith.addf %w, %w : f32
    %r = arith.truncf %s : f32 to f16
    device.yield %r : f16
  } : (tensor<2x3xf16>) -> tensor<2x3xf16>
  return %y : tensor<2x3xf16>
}

// CHECK-LABEL: func.func @attention
// ROWS: device.attention %arg0, %arg0, %arg0 epilogue {
// ROWS: device.yield %{{.*}} : i8
// ROWS-NOT: device.map
// NONE: device.attention
// NONE-NEXT: device.map
func.func @attention(%q: tensor<2x3x4xf32>) -> tensor<2x3x4xi8> {
  %n = device.attention %q, %q, %q {scale = 1.0} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = device.map(%n) {
  ^bb0(%a: f32):
    %i = arith.fptosi %a : f32 to i8
    device.yield %i : i8
  } : (tensor<2x3x4xf32>) -> tensor<2x3x4xi8>
  return %y : tensor<2x3x4xi8>
}

// INTEGER-LABEL: func.func @norms
// INTEGER: device.norm {{.*}} epilogue {
// INTEGER-LABEL: func.func @attention
// INTEGER: device.attention %arg0, %arg0, %arg0 {
// INTEGER-NEXT: device.map

// INTEGER-LABEL: func.func @integers
// CHECK-LABEL: func.func @integers
// INTEGER: device.attention %arg0, %arg0, %arg0 epilogue {
// INTEGER-NOT: device.map
func.func @integers(%q: tensor<2x3x4xi8>) -> tensor<2x3x4xi8> {
  %n = device.attention %q, %q, %q {scale = 1.0, levels = 255 : i64, valueScale = 0.1} : (tensor<2x3x4xi8>, tensor<2x3x4xi8>, tensor<2x3x4xi8>) -> tensor<2x3x4xf32>
  %y = device.map(%n) {
  ^bb0(%a: f32):
    %i = arith.fptosi %a : f32 to i8
    device.yield %i : i8
  } : (tensor<2x3x4xf32>) -> tensor<2x3x4xi8>
  return %y : tensor<2x3x4xi8>
}
