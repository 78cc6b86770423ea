// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --npu-verify-decisions --verify-diagnostics --split-input-file

func.func @other_layers(%x: tensor<1x16x32x32xi8>) -> tensor<1x16x32x32xi8> attributes {device.workspace_bytes = 16384 : i64, npu.effort = 2 : i32} {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  // expected-error @below {{has npu.resident = #npu.resident<layers 0 to 2, bytes = 1024, dense = true, stored = false>, but what it writes is used as #npu.resident<layers 0 to 1, bytes = 1024, dense = true, stored = false>}}
  %a = device.lut %x, %t {device.addresses = array<i64: 0>, npu.resident = #npu.resident<layers 0 to 2, bytes = 1024, dense = true, stored = false>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  %y = device.lut %a, %t {device.addresses = array<i64: 0>, device.memories = array<i64: 1>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  return %y : tensor<1x16x32x32xi8>
}

// -----

func.func @nobody_reads(%x: tensor<1x16x32x32xi8>) -> tensor<1x16x32x32xi8> attributes {npu.effort = 2 : i32} {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  // expected-error @below {{has npu.resident, but its result cannot stay in local memory}}
  %y = device.lut %x, %t {device.addresses = array<i64: 0>, device.memories = array<i64: 1>, npu.resident = #npu.resident<layers 0 to 0, bytes = 1024, dense = true, stored = true>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  return %y : tensor<1x16x32x32xi8>
}

// -----

func.func @no_layer(%x: tensor<1x16x32x32xi8>) -> tensor<1x16x32x32xi8> attributes {npu.effort = 2 : i32} {
  // expected-error @below {{has npu.resident, but no layer writes its result}}
  %t = top.constant dense<7> : tensor<256xi8> {npu.resident = #npu.resident<layers 0 to 0, bytes = 1024, dense = true, stored = true>} : tensor<256xi8>
  %y = device.lut %x, %t {device.addresses = array<i64: 0>, device.memories = array<i64: 1>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  return %y : tensor<1x16x32x32xi8>
}

// -----

func.func @half_a_group(%x: tensor<1x16x32x32xi8>) -> tensor<1x16x32x32xi8> attributes {device.workspace_bytes = 16384 : i64, npu.effort = 2 : i32} {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  %a = device.lut %x, %t {device.addresses = array<i64: 0>, npu.slices = #npu.slices<layers 0 to 1, from = [0, 16], until = [16, 32]>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  // expected-error @below {{is layer 1 of a group of 2 slices, layers 0 to 1, but its npu.slices says otherwise}}
  %y = device.lut %a, %t {device.addresses = array<i64: 0>, device.memories = array<i64: 1>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  return %y : tensor<1x16x32x32xi8>
}

// -----

func.func @too_many_rows(%x: tensor<1x16x32x32xi8>) -> tensor<1x16x32x32xi8> attributes {device.workspace_bytes = 16384 : i64, npu.effort = 2 : i32} {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  // expected-error @below {{computes rows to 40 of 32 in npu.slices}}
  %a = device.lut %x, %t {device.addresses = array<i64: 0>, npu.slices = #npu.slices<layers 0 to 1, from = [0, 16], until = [16, 40]>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  %y = device.lut %a, %t {device.addresses = array<i64: 0>, device.memories = array<i64: 1>, npu.slices = #npu.slices<layers 0 to 1, from = [0, 16], until = [16, 32]>} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  return %y : tensor<1x16x32x32xi8>
}

// -----

func.func @no_effort(%x: tensor<1x16x32x32xi8>) -> tensor<1x16x32x32xi8> attributes {device.workspace_bytes = 16384 : i64} {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  // expected-error @below {{has npu.single_buffered, but the function does not have a schedule (npu.effort)}}
  %y = device.lut %x, %t {device.addresses = array<i64: 0>, device.memories = array<i64: 1>, npu.single_buffered} : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  return %y : tensor<1x16x32x32xi8>
}

// -----

// expected-error @below {{slice 1 ends at row 8, before the previous slice, which ends at 16 (slices_c3)}}
func.func @slices_c3() attributes {a = #npu.slices<layers 0 to 1, from = [0, 8], until = [16, 8]>} { return }

// -----

// expected-error @below {{slice 1 holds rows from 20 on, but computes them from 16 on (slices_c4)}}
func.func @slices_c4() attributes {a = #npu.slices<layers 0 to 1, from = [0, 20], until = [16, 32]>} { return }

// -----

// expected-error @below {{'from' has 1 rows and 'until' 2: expected at least two slices, with an entry in both lists (slices_c2)}}
func.func @slices_c2() attributes {a = #npu.slices<layers 0 to 1, from = [0], until = [16, 32]>} { return }

// -----

// expected-error @below {{layers 3 to 3: a group has at least two layers (slices_c1)}}
func.func @slices_c1() attributes {a = #npu.slices<layers 3 to 3, from = [0, 8], until = [16, 32]>} { return }

// -----

// expected-error @below {{layers 3 to 2: the last is before the first (resident_c1)}}
func.func @resident_c1() attributes {a = #npu.resident<layers 3 to 2, bytes = 4, dense = true, stored = false>} { return }
