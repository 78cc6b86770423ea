// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-assign-addresses --device-verify-addresses | FileCheck %s
// RUN: tessera-opt %s --device-assign-addresses="part-alignment=1" --device-verify-addresses="alignment=1" | FileCheck %s --check-prefix=ANY
// RUN: not tessera-opt %s --device-assign-addresses="part-alignment=1" --device-verify-addresses 2>&1 | FileCheck %s --check-prefix=STRICT

// A part that does not begin at a multiple of 64 is computed in place only if the target supports any address.
// CHECK: device.copy {{.*}} {device.addresses = array<i64: {{[0-9]+}}>, pieces
// ANY: } {device.addresses = array<i64: 0>} : (tensor<5xf32>)
// ANY: } {device.addresses = array<i64: 20>} : (tensor<7xf32>)
// ANY: device.copy {{.*}} {device.addresses = array<i64: 0>, device.elided, pieces
// STRICT: address 20 is not a multiple of 64
#first = #device.piece<source = 0, sizes = [5], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>
#second = #device.piece<source = 1, sizes = [7], dst_offsets = [5], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>
func.func @parts(%x: tensor<5xf32>, %y: tensor<7xf32>) -> tensor<1xf32> {
  %a = device.map(%x) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<5xf32>) -> tensor<5xf32>
  %b = device.map(%y) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<7xf32>) -> tensor<7xf32>
  %c = device.copy %a, %b {pieces = [#first, #second]} : (tensor<5xf32>, tensor<7xf32>) -> tensor<12xf32>
  %s = device.reduce sum %c {axes = array<i64: 0>} : (tensor<12xf32>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}
