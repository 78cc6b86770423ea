// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --verify-diagnostics --split-input-file

// expected-error @below {{resident = rows_loaded: an input in local memory is not loaded (taps_c1)}}
func.func @taps_c1() attributes {a = #npu.taps<fetched = window, resident = rows_loaded>} { return }

// -----

// expected-error @below {{rows_loaded with 3 columns: expected two or more, of all_loaded or all_moved (taps_c2)}}
func.func @taps_c2() attributes {a = #npu.taps<fetched = rows_loaded, resident = window, fetched_columns = 3>} { return }

// -----

// expected-error @below {{a batch has 0 blocks of queries, expected at least one (attention_c1)}}
func.func @attention_c1() attributes {a = #npu.attention<blocks, blocks = 0>} { return }

// -----

func.func @pieces_c1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has npu.pieces for 2 pieces, expected a copy with as many pieces (pieces_c1)}}
  %y = device.copy %x {npu.pieces = #npu.pieces<early, turn>, pieces = [#device.piece<source = 0, sizes = [4], dst_offsets = [0], dst_steps = [1], src_dims = [0], src_offsets = [0], src_steps = [1]>]} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @no_conv(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected one #npu.taps for each volume of a conv: 0}}
  %y = device.softmax %x {axis = 0 : i64, npu.taps = [#npu.taps<fetched = window, resident = window>]} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @no_attention(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected #npu.attention, on a device.attention}}
  %y = device.softmax %x {axis = 0 : i64, npu.attention = #npu.attention<queries, blocks = 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @no_matmul(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected a number of batches, on a device.matmul}}
  %y = device.softmax %x {axis = 0 : i64, npu.row_lanes = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @no_batches(%a: tensor<1x4xi8>) -> tensor<1x8xi32> {
  %b = top.constant dense<3> : tensor<4x8xi8> : tensor<4x8xi8>
  // expected-error @below {{expected a number of batches, on a device.matmul}}
  %c = device.matmul %a, %b {npu.row_lanes = 0 : i64} : (tensor<1x4xi8>, tensor<4x8xi8>) -> tensor<1x8xi32>
  return %c : tensor<1x8xi32>
}
