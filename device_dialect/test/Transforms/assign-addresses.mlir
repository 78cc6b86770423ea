// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-assign-addresses --device-verify-addresses --split-input-file | FileCheck %s

#id = #device.piece<source = 0, sizes = [1, 32, 2, 2], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>
#second = #device.piece<source = 1, sizes = [1, 16, 2, 2], dst_offsets = [0, 32, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>

// Both parts of a channel concatenation are computed in place.
// CHECK-LABEL: func.func @concat
// CHECK-SAME: device.workspace_bytes = 768 : i64, device.workspace_lower_bound = 768 : i64
// CHECK: device.map
// CHECK: } {device.addresses = array<i64: 0>} : (tensor<1x32x2x2xf32
// CHECK: device.map
// CHECK: } {device.addresses = array<i64: 512>} : (tensor<1x16x2x2xf32
// CHECK: device.copy {{.*}} {device.addresses = array<i64: 0>, device.elided, pieces
// CHECK: device.reduce {{.*}} device.memories = array<i64: 1>
func.func @concat(%x: tensor<1x32x2x2xf32, #device.blocked<16>>, %y: tensor<1x16x2x2xf32, #device.blocked<16>>) -> tensor<1x48x1x1xf32> {
  %a = device.map(%x) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<1x32x2x2xf32, #device.blocked<16>>) -> tensor<1x32x2x2xf32, #device.blocked<16>>
  %b = device.map(%y) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<1x16x2x2xf32, #device.blocked<16>>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  %c = device.copy %a, %b {pieces = [#id, #second]} : (tensor<1x32x2x2xf32, #device.blocked<16>>, tensor<1x16x2x2xf32, #device.blocked<16>>) -> tensor<1x48x2x2xf32, #device.blocked<16>>
  %s = device.reduce max %c {axes = array<i64: 2, 3>} : (tensor<1x48x2x2xf32, #device.blocked<16>>) -> tensor<1x48x1x1xf32>
  return %s : tensor<1x48x1x1xf32>
}

// -----

#id = #device.piece<source = 0, sizes = [1, 32, 2, 2], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>
#second = #device.piece<source = 1, sizes = [1, 16, 2, 2], dst_offsets = [0, 32, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>

// An argument is copied to its place; a concatenation that is a result lies in the caller's memory.
// CHECK-LABEL: func.func @concat_of_argument
// CHECK: device.map
// CHECK: } {device.addresses = array<i64: 0>, device.memories = array<i64: 1>}
// CHECK: device.copy %arg1 {device.addresses = array<i64: 512>, device.memories = array<i64: 1>, pieces
// CHECK: device.copy {{.*}} {device.addresses = array<i64: 0>, device.elided, device.memories = array<i64: 1>, pieces
func.func @concat_of_argument(%x: tensor<1x32x2x2xf32>, %y: tensor<1x16x2x2xf32>) -> tensor<1x48x2x2xf32> {
  %a = device.map(%x) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<1x32x2x2xf32>) -> tensor<1x32x2x2xf32>
  %c = device.copy %a, %y {pieces = [#id, #second]} : (tensor<1x32x2x2xf32>, tensor<1x16x2x2xf32>) -> tensor<1x48x2x2xf32>
  return %c : tensor<1x48x2x2xf32>
}

// -----

// A slice of the outermost dim is a view, also of an argument; a slice inside a row is not.
// CHECK-LABEL: func.func @slices
// CHECK: device.copy %arg0 {device.addresses = array<i64: 64>, device.elided, device.memories = array<i64: -1>
// CHECK: device.copy %arg0 {device.addresses = array<i64: 0>, pieces
// CHECK: device.map
// CHECK: device.inplace = 1 : i64, device.memories = array<i64: 1>
func.func @slices(%x: tensor<4x16xf32>) -> tensor<2x16xf32> {
  %a = device.copy %x {pieces = [#device.piece<source = 0, sizes = [2, 16], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [1, 0], src_steps = [1, 1]>]} : (tensor<4x16xf32>) -> tensor<2x16xf32>
  %b = device.copy %x {pieces = [#device.piece<source = 0, sizes = [2, 8], dst_offsets = [0, 0], dst_steps = [1, 1], src_dims = [0, 1], src_offsets = [1, 8], src_steps = [1, 1]>]} : (tensor<4x16xf32>) -> tensor<2x8xf32>
  %s = device.reduce sum %b {axes = array<i64: 1>} : (tensor<2x8xf32>) -> tensor<2x1xf32>
  %t = device.map(%a, %s) {
  ^bb0(%e: f32, %f: f32):
    %n = arith.addf %e, %f : f32
    device.yield %n : f32
  } : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>
  %y = device.map(%a, %t) {
  ^bb0(%e: f32, %f: f32):
    %n = arith.mulf %e, %f : f32
    device.yield %n : f32
  } : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  return %y : tensor<2x16xf32>
}

// -----

// A chain of maps needs one buffer; an operand that is needed later is not overwritten.
// CHECK-LABEL: func.func @inplace
// CHECK-SAME: device.workspace_bytes = 512 : i64
// CHECK: device.softmax %arg0 {axis = 0 : i64, device.addresses = array<i64: [[A:[0-9]+]]>}
// CHECK: device.map
// CHECK: } {device.addresses = array<i64: [[B:[0-9]+]]>} :
// CHECK: device.map
// CHECK: } {device.addresses = array<i64: [[B]]>, device.inplace = 0 : i64}
// CHECK: device.map
// CHECK: device.memories = array<i64: 1>
func.func @inplace(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = device.softmax %x {axis = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
  %b = device.map(%a) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<64xf32>) -> tensor<64xf32>
  %c = device.map(%b) {
  ^bb0(%e: f32):
    %n = arith.mulf %e, %e : f32
    device.yield %n : f32
  } : (tensor<64xf32>) -> tensor<64xf32>
  %d = device.map(%a, %c) {
  ^bb0(%e: f32, %f: f32):
    %n = arith.addf %e, %f : f32
    device.yield %n : f32
  } : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %r = device.softmax %d {axis = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
