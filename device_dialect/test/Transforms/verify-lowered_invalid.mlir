// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-verify-lowered --verify-diagnostics --split-input-file

func.func @top_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'top.relu' is neither a device op nor a constant}}
  %y = top.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{result of type 'tensor<?xf32>' is not a tensor of known shape}}
  %y = device.map(%x) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } : (tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
