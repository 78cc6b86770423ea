// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-verify-addresses --verify-diagnostics --split-input-file

func.func @overwritten(%x: tensor<64xf32>) -> tensor<64xf32> attributes {device.workspace_bytes = 512 : i64} {
  %a = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
  // expected-note @below {{written here}}
  %b = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 192>} : (tensor<64xf32>) -> tensor<64xf32>
  // expected-error @below {{reads operand of type 'tensor<64xf32>' at 0 of memory 0, which does not hold this value}}
  %c = device.map(%a, %b) {
  ^bb0(%e: f32, %f: f32):
    %n = arith.addf %e, %f : f32
    device.yield %n : f32
  } {device.addresses = array<i64: 0>, device.memories = array<i64: 1>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %c : tensor<64xf32>
}

// -----

func.func @not_allowed_in_place(%x: tensor<64xf32>) -> tensor<64xf32> attributes {device.workspace_bytes = 256 : i64} {
  %a = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
  // expected-error @below {{overwrites operand 0 at 0 while it reads it}}
  %b = device.softmax %a {axis = 0 : i64, device.addresses = array<i64: 0>, device.inplace = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
  return %b : tensor<64xf32>
}

// -----

func.func @not_declared_in_place(%x: tensor<64xf32>) -> tensor<64xf32> attributes {device.workspace_bytes = 256 : i64} {
  %a = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
  // expected-error @below {{overwrites operand 0 at 0 while it reads it}}
  %b = device.map(%a) {
  ^bb0(%e: f32):
    %n = arith.negf %e : f32
    device.yield %n : f32
  } {device.addresses = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
  return %b : tensor<64xf32>
}

// -----

func.func @misaligned(%x: tensor<64xf32>) -> tensor<64xf32> attributes {device.workspace_bytes = 512 : i64} {
  // expected-error @below {{address 32 is not a multiple of 64}}
  %a = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 32>} : (tensor<64xf32>) -> tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

func.func @outside(%x: tensor<64xf32>) -> tensor<64xf32> attributes {device.workspace_bytes = 256 : i64} {
  // expected-error @below {{result takes bytes 64..320 of a memory of 256}}
  %a = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 64>} : (tensor<64xf32>) -> tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

func.func @argument_written(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{memory -1 does not exist or may not be written by this op}}
  %a = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 0>, device.memories = array<i64: -1>} : (tensor<64xf32>) -> tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

func.func @no_address(%x: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{result of type 'tensor<64xf32>' has no address}}
  %a = device.softmax %x {axis = 0 : i64} : (tensor<64xf32>) -> tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

// The view is not at the address of its source.
func.func @stray_view(%x: tensor<64xf32>) -> tensor<8x8xf32> attributes {device.workspace_bytes = 512 : i64} {
  %a = device.softmax %x {axis = 0 : i64, device.addresses = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
  // expected-error @below {{reads result of type 'tensor<8x8xf32>' at 256 of memory 0, which does not hold this value}}
  %r = device.reshape %a {device.addresses = array<i64: 256>} : (tensor<64xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
