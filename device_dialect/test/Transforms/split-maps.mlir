// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-split-maps --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Of five operands, the value of the first three becomes a tensor of their size.
// CHECK-LABEL: func.func @five
// CHECK: %[[T:.*]] = device.map(%arg0, %arg1, %arg2)
// CHECK: %[[S:.*]] = arith.addf
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[S]]
// CHECK-NEXT: device.yield %[[P]]
// CHECK: (tensor<3x1xf32>, tensor<4xf32>, tensor<f32>) -> tensor<3x4xf32>
// CHECK: %[[Y:.*]] = device.map(%[[T]], %arg3, %arg4)
// CHECK: arith.divf
// CHECK: math.roundeven
// CHECK: arith.fptosi
// CHECK: {top.outputs = ["y"]} : (tensor<3x4xf32>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xi8>{{.*}}"Add_0"
// CHECK-NEXT: return %[[Y]]
func.func @five(%a: tensor<3x1xf32>, %b: tensor<4xf32>, %c: tensor<f32>, %d: tensor<2x3x4xf32>, %e: tensor<f32>) -> tensor<2x3x4xi8> {
  %y = device.map(%a, %b, %c, %d, %e) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32, %t: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.mulf %0, %r : f32
    %2 = arith.addf %s, %t : f32
    %3 = arith.divf %1, %2 : f32
    %4 = math.roundeven %3 : f32
    %5 = arith.fptosi %4 : f32 to i8
    device.yield %5 : i8
  } {top.outputs = ["y"]} : (tensor<3x1xf32>, tensor<4xf32>, tensor<f32>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xi8> loc("Add_0")
  return %y : tensor<2x3x4xi8>
}

// -----

// Not split: four operands, and five of which one is not read.
// CHECK-LABEL: func.func @four
// CHECK: device.map(%arg0, %arg1, %arg2, %arg3)
// CHECK: device.map(%arg0, %arg1, %arg2)
// CHECK-NOT: device.map
// CHECK: return
func.func @four(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = device.map(%a, %b, %c, %d) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.mulf %r, %s : f32
    %2 = arith.addf %0, %1 : f32
    device.yield %2 : f32
  } : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = device.map(%a, %b, %c, %d, %y) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32, %t: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.mulf %0, %r : f32
    device.yield %1 : f32
  } : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// With eight operands, both halves become tensors.
// CHECK-LABEL: func.func @eight
// CHECK-COUNT-3: device.map
// CHECK-NOT: device.map
// CHECK: return
func.func @eight(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>, %f: tensor<4xf32>, %g: tensor<4xf32>, %h: tensor<4xf32>) -> tensor<4xf32> {
  %y = device.map(%a, %b, %c, %d, %e, %f, %g, %h) {
  ^bb0(%p: f32, %q: f32, %r: f32, %s: f32, %t: f32, %u: f32, %v: f32, %w: f32):
    %0 = arith.addf %p, %q : f32
    %1 = arith.addf %r, %s : f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %t, %u : f32
    %4 = arith.addf %v, %w : f32
    %5 = arith.mulf %3, %4 : f32
    %6 = arith.addf %2, %5 : f32
    device.yield %6 : f32
  } : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
