// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-verify-layouts --verify-diagnostics --split-input-file

// expected-error @below {{an argument is 'tensor<1x16x2x2xf32, #device.blocked<16>>', allowed row-major}}
func.func @argument(%x: tensor<1x16x2x2xf32, #device.blocked<16>>) {
  return
}

// -----

func.func @map(%x: tensor<1x16x2x2xf32>) {
  // expected-error @below {{in another layout}}
  %y = device.map(%x) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}

// -----

func.func @softmax(%x: tensor<1x16x2x2xf32>) {
  // expected-error @below {{writes 'tensor<1x16x2x2xf32, #device.blocked<16>>', which it can only row-major}}
  %y = device.softmax %x {axis = 1 : i64} : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #device.blocked<16>>
  return
}
