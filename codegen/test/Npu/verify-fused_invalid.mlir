// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --npu-verify-decisions --verify-diagnostics --split-input-file

#turn = #device.piece<source = 0, sizes = [1, 9, 24], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>
func.func @reader_cannot(%x: tensor<1x24x9xf32>) -> tensor<1x9x24xf32> {
  // expected-error @below {{is fused into its readers, but 'device.softmax' cannot read operand 0 as it lies}}
  %t = device.copy %x {npu.fused = #npu.fused<readers>, pieces = [#turn]} : (tensor<1x24x9xf32>) -> tensor<1x9x24xf32>
  %y = device.softmax %t {axis = 2 : i64} : (tensor<1x9x24xf32>) -> tensor<1x9x24xf32>
  return %y : tensor<1x9x24xf32>
}

// -----

#turn = #device.piece<source = 0, sizes = [1, 9, 24], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>
func.func @nobody_does_it(%x: tensor<1x24x9xf32>) -> tensor<1x9x24xf32> {
  // expected-error @below {{is fused into the op that computes its operand, but that is not a norm, an attention or a matmul on rows}}
  %t = device.copy %x {npu.fused = #npu.fused<producer, target = 0>, pieces = [#turn]} : (tensor<1x24x9xf32>) -> tensor<1x9x24xf32>
  return %t : tensor<1x9x24xf32>
}

// -----

#turn = #device.piece<source = 0, sizes = [1, 9, 24], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>
func.func @place_left_out(%x: tensor<1x24x9xf32>) -> (tensor<1x24x9xf32>, tensor<1x9x24xf32>) {
  %n = device.norm %x {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<1x24x9xf32>) -> tensor<1x24x9xf32>
  // expected-error @below {{is destination 2 of the result of 'device.norm', expected 1}}
  %t = device.copy %n {npu.fused = #npu.fused<producer, target = 2>, pieces = [#turn]} : (tensor<1x24x9xf32>) -> tensor<1x9x24xf32>
  return %n, %t : tensor<1x24x9xf32>, tensor<1x9x24xf32>
}

// -----

#turn = #device.piece<source = 0, sizes = [1, 9, 24], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>
func.func @still_read(%x: tensor<1x24x9xf32>) -> (tensor<1x24x9xf32>, tensor<1x9x24xf32>) {
  // expected-error @below {{does not have its own storage, but 'device.softmax' cannot read operand 0 from the copy that is destination 0}}
  %n = device.norm %x {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<1x24x9xf32>) -> tensor<1x24x9xf32>
  %t = device.copy %n {npu.fused = #npu.fused<producer, target = 0>, pieces = [#turn]} : (tensor<1x24x9xf32>) -> tensor<1x9x24xf32>
  %s = device.softmax %n {axis = 2 : i64} : (tensor<1x24x9xf32>) -> tensor<1x24x9xf32>
  return %s, %t : tensor<1x24x9xf32>, tensor<1x9x24xf32>
}

// -----

func.func @fused_c1(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{has target 0 in npu.fused: copies fused into a producer need a target from 0 on, other ops must not have one}}
  %y = device.map(%x) {
  ^bb0(%e: f32):
    device.yield %e : f32
  } {npu.fused = #npu.fused<producer, target = 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @map_of_two_readers(%x: tensor<1x3x8x8xf32>) -> (tensor<1x4x8x8xi32>, tensor<1x3x8x8xi8>) {
  %w = top.constant dense<3> : tensor<4x3x3x3xi8> : tensor<4x3x3x3xi8>
  // expected-error @below {{is fused into its readers, but is not a map of a function argument that only a convolution reads}}
  %q = device.map(%x) {
  ^bb0(%e: f32):
    %i = arith.fptosi %e : f32 to i8
    device.yield %i : i8
  } {npu.fused = #npu.fused<readers>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xi8>
  %c = device.conv %q, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xi8>, tensor<4x3x3x3xi8>) -> tensor<1x4x8x8xi32>
  return %c, %q : tensor<1x4x8x8xi32>, tensor<1x3x8x8xi8>
}

// -----

func.func @wrong_op(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{cannot be fused: only copies and maps can}}
  %y = device.softmax %x {axis = 1 : i64, npu.fused = #npu.fused<readers>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @unknown(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{has an unknown attribute "npu.other"}}
  %y = device.softmax %x {axis = 1 : i64, npu.other} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
