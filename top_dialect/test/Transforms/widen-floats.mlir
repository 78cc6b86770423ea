// RUN: tessera-opt %s --top-widen-floats --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Inputs and outputs keep their types; constants are converted; casts from narrow types to f32 are removed.
// CHECK-LABEL: @half(%arg0: tensor<4xf16>) -> tensor<4xf16>
// CHECK-NEXT: %[[X:.*]] = top.cast %arg0 {to = f32} : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[C:.*]] = top.constant dense<1.500000e+00> : tensor<f32>
// CHECK-NEXT: %[[A:.*]] = top.add %[[X]], %[[C]]{{.*}} -> tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = top.relu %[[A]]{{.*}} -> tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = top.cast %[[R]] {to = f16}
// CHECK-NEXT: return %[[Y]]
func.func @half(%x: tensor<4xf16>) -> tensor<4xf16> {
  %c = top.constant dense<1.5> : tensor<f16> : tensor<f16>
  %a = top.add %x, %c : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  %b = top.cast %a {to = f32} : (tensor<4xf16>) -> tensor<4xf32>
  %r = top.relu %b : (tensor<4xf32>) -> tensor<4xf32>
  %y = top.cast %r {to = f16} : (tensor<4xf32>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

// The model's own casts to a narrow type still round, to bf16 and to f16; f64 stays.
// CHECK-LABEL: @others
// CHECK-NEXT: %[[I:.*]] = top.cast %arg0 {to = bf16} : (tensor<2xi32>) -> tensor<2xbf16>
// CHECK-NEXT: %[[W:.*]] = top.cast %[[I]] {to = f32} : (tensor<2xbf16>) -> tensor<2xf32>
// CHECK-NEXT: %[[D:.*]] = top.cast %[[W]] {to = f64} : (tensor<2xf32>) -> tensor<2xf64>
// CHECK-NEXT: return %[[D]] : tensor<2xf64>
func.func @others(%x: tensor<2xi32>) -> tensor<2xf64> {
  %a = top.cast %x {to = bf16} : (tensor<2xi32>) -> tensor<2xbf16>
  %y = top.cast %a {to = f64} : (tensor<2xbf16>) -> tensor<2xf64>
  return %y : tensor<2xf64>
}

// -----

// A round trip rounds, although an op between the casts computes in f32. The value that is read has the name.
// CHECK-LABEL: @round_trip
// CHECK-NEXT: %[[H:.*]] = top.cast %arg0 {to = f16} : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT: %[[W:.*]] = top.cast %[[H]] {to = f32, top.outputs = ["h"]} : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = top.relu %[[W]]{{.*}} -> tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = top.cast %[[R]] {to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: %[[V:.*]] = top.cast %[[B]] {to = f32} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[I:.*]] = top.cast %[[V]] {to = i32} : (tensor<4xf32>) -> tensor<4xi32>
// CHECK-NEXT: return %[[W]], %[[I]]
func.func @round_trip(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %h = top.cast %x {to = f16, top.outputs = ["h"]} : (tensor<4xf32>) -> tensor<4xf16>
  %a = top.cast %h {to = f32} : (tensor<4xf16>) -> tensor<4xf32>
  %r = top.relu %h : (tensor<4xf16>) -> tensor<4xf16>
  %b = top.cast %r {to = bf16} : (tensor<4xf16>) -> tensor<4xbf16>
  %i = top.cast %b {to = i32} : (tensor<4xbf16>) -> tensor<4xi32>
  return %a, %i : tensor<4xf32>, tensor<4xi32>
}

// -----

// A result of the network is rounded once; arguments that are only returned are not converted.
// CHECK-LABEL: @results
// CHECK-NEXT: %[[H:.*]] = top.cast %arg0 {to = f16, top.outputs = ["h"]}
// CHECK-NEXT: return %[[H]], %arg1
func.func @results(%x: tensor<4xf32>, %y: tensor<4xbf16>) -> (tensor<4xf16>, tensor<4xbf16>) {
  %h = top.cast %x {to = f16, top.outputs = ["h"]} : (tensor<4xf32>) -> tensor<4xf16>
  return %h, %y : tensor<4xf16>, tensor<4xbf16>
}

// -----

// Nothing changes without narrow floats.
// CHECK-LABEL: @single
// CHECK-NEXT: top.relu
// CHECK-NEXT: return
func.func @single(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = top.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
