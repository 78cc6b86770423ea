// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-expand-log1p | FileCheck %s

// CHECK-LABEL: func.func @single
// CHECK: ^bb0(%[[X:.*]]: f32):
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[X]], %[[ONE]]
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[U]], %[[ONE]]
// CHECK-NEXT: %[[Q:.*]] = arith.divf %[[X]], %[[D]]
// CHECK-NEXT: %[[L:.*]] = math.log %[[U]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[L]], %[[Q]]
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[LOST:.*]] = arith.cmpf oeq, %[[D]], %[[ZERO]]
// CHECK-NEXT: %[[S:.*]] = arith.select %[[LOST]], %[[X]], %[[P]]
// CHECK-NEXT: %[[SAME:.*]] = arith.cmpf oeq, %[[U]], %[[X]]
// CHECK-NEXT: %[[Y:.*]] = arith.select %[[SAME]], %[[L]], %[[S]]
// CHECK-NEXT: device.yield %[[Y]]
func.func @single(%a: tensor<4xf32>) -> tensor<4xf32> {
  %y = device.map(%a) {
  ^bb0(%x: f32):
    %0 = math.log1p %x : f32
    device.yield %0 : f32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func.func @double
// CHECK: math.log1p
func.func @double(%a: tensor<4xf64>) -> tensor<4xf64> {
  %y = device.map(%a) {
  ^bb0(%x: f64):
    %0 = math.log1p %x : f64
    device.yield %0 : f64
  } : (tensor<4xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}
