// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-expand-scatter | FileCheck %s

// CHECK-LABEL: func.func @row
// CHECK: %[[I:.*]] = device.reshape %arg1
// CHECK: %[[SECOND:.*]] = device.copy {{.*}}src_offsets = [1]
// CHECK: %[[INDEX:.*]] = device.reshape %[[SECOND]] : (tensor<1xi64>) -> tensor<1x1x1xi64>
// CHECK: %[[P:.*]] = top.constant {{.*}} : tensor<1x4x1xi64>
// CHECK: device.map(%arg0, %arg2, %[[INDEX]], %[[P]])
// CHECK: ^bb0(%[[X:.*]]: f32, %[[U:.*]]: f32, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: arith.select %{{.*}}, %[[U]], %[[X]] : f32
func.func @row(%x: tensor<1x4x3xf32>, %i: tensor<1x1x2xi64>, %u: tensor<1x1x3xf32>) -> tensor<1x4x3xf32> {
  %y = device.scatter %x, %i, %u {nd = true} : (tensor<1x4x3xf32>, tensor<1x1x2xi64>, tensor<1x1x3xf32>) -> tensor<1x4x3xf32>
  return %y : tensor<1x4x3xf32>
}

// CHECK-LABEL: func.func @element_of_each_row
// CHECK: device.map(%arg0, %arg2, %arg1, %{{.*}})
func.func @element_of_each_row(%x: tensor<4x3xi8>, %i: tensor<4x1xi32>, %u: tensor<4x1xi8>) -> tensor<4x3xi8> {
  %y = device.scatter %x, %i, %u {axis = 1 : i64} : (tensor<4x3xi8>, tensor<4x1xi32>, tensor<4x1xi8>) -> tensor<4x3xi8>
  return %y : tensor<4x3xi8>
}

// Not expanded: several rows, two varying indices, sums, and integers that f32 cannot represent.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: device.scatter
func.func @others(%x: tensor<4x3xf32>, %i: tensor<2x1xi64>, %u: tensor<2x3xf32>, %j: tensor<1x2xi64>, %v: tensor<1xf32>,
    %k: tensor<1x1xi64>, %w: tensor<1x3xf32>, %n: tensor<4x3xi32>, %o: tensor<1x3xi32>)
    -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xi32>) {
  %a = device.scatter %x, %i, %u {nd = true} : (tensor<4x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %b = device.scatter %x, %j, %v {nd = true} : (tensor<4x3xf32>, tensor<1x2xi64>, tensor<1xf32>) -> tensor<4x3xf32>
  %c = device.scatter %x, %k, %w {nd = true, reduction = "add"} : (tensor<4x3xf32>, tensor<1x1xi64>, tensor<1x3xf32>) -> tensor<4x3xf32>
  %d = device.scatter %n, %k, %o {nd = true} : (tensor<4x3xi32>, tensor<1x1xi64>, tensor<1x3xi32>) -> tensor<4x3xi32>
  return %a, %b, %c, %d : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xi32>
}
