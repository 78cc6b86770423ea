// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-form-tables=per-channel --split-input-file | FileCheck %s
// RUN: tessera-opt %s --device-form-tables --split-input-file | FileCheck %s --check-prefix=ALONE

// Pixels minus the mean of their channel: one table for each of two channels.
// CHECK-LABEL: func.func @channels
// CHECK: %[[T:.*]] = top.constant dense<"0xFFFEFDFC{{[0-9A-F]*}}020100000102030405{{.*}}tensor<2x256xi8>
// CHECK: device.lut %arg0, %[[T]] : (tensor<1x2x32x32xi8>, tensor<2x256xi8>) -> tensor<1x2x32x32xi8>
// ALONE-LABEL: func.func @channels
// ALONE-NOT: device.lut
func.func @channels(%x: tensor<1x2x32x32xi8>) -> tensor<1x2x32x32xi8> {
  %c = top.constant dense<[[[[-1]], [[0]]]]> : tensor<1x2x1x1xi8> : tensor<1x2x1x1xi8>
  %y = device.map(%x, %c) {
  ^bb0(%a: i8, %b: i8):
    %r = arith.xori %a, %b : i8
    device.yield %r : i8
  } : (tensor<1x2x32x32xi8>, tensor<1x2x1x1xi8>) -> tensor<1x2x32x32xi8>
  return %y : tensor<1x2x32x32xi8>
}

// -----

// All channels have the same function: one table.
// CHECK-LABEL: func.func @equal
// CHECK: device.lut %arg0, %{{.*}} : (tensor<1x2x4x4xi8>, tensor<256xi8>)
func.func @equal(%x: tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi8> {
  %c = top.constant dense<3> : tensor<2x1x1xi8> : tensor<2x1x1xi8>
  %y = device.map(%x, %c) {
  ^bb0(%a: i8, %b: i8):
    %r = arith.xori %a, %b : i8
    device.yield %r : i8
  } : (tensor<1x2x4x4xi8>, tensor<2x1x1xi8>) -> tensor<1x2x4x4xi8>
  return %y : tensor<1x2x4x4xi8>
}

// -----

// Not tables: tables that are not smaller than a quarter of the tensor, and values per column.
// CHECK-LABEL: func.func @others
// CHECK-NOT: device.lut
func.func @others(%x: tensor<1x2x31x33xi8>, %z: tensor<1x64x64x2xi8>) -> (tensor<1x2x31x33xi8>, tensor<1x64x64x2xi8>) {
  %c = top.constant dense<[[[1]], [[0]]]> : tensor<2x1x1xi8> : tensor<2x1x1xi8>
  %d = top.constant dense<[1, 2]> : tensor<2xi8> : tensor<2xi8>
  %y = device.map(%x, %c) {
  ^bb0(%a: i8, %b: i8):
    %r = arith.xori %a, %b : i8
    device.yield %r : i8
  } : (tensor<1x2x31x33xi8>, tensor<2x1x1xi8>) -> tensor<1x2x31x33xi8>
  %w = device.map(%z, %d) {
  ^bb0(%a: i8, %b: i8):
    %r = arith.xori %a, %b : i8
    device.yield %r : i8
  } : (tensor<1x64x64x2xi8>, tensor<2xi8>) -> tensor<1x64x64x2xi8>
  return %y, %w : tensor<1x2x31x33xi8>, tensor<1x64x64x2xi8>
}
