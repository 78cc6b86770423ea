// RUN: tessera-opt %s --top-widen-floats --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Inputs and outputs keep their types; constants are converted; inner casts between floats vanish.
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

// bf16 as well; casts from and to other types stay, f64 is left alone.
// CHECK-LABEL: @others
// CHECK-NEXT: %[[I:.*]] = top.cast %arg0 {to = f32} : (tensor<2xi32>) -> tensor<2xf32>
// CHECK-NEXT: %[[D:.*]] = top.cast %[[I]] {to = f64} : (tensor<2xf32>) -> tensor<2xf64>
// CHECK-NEXT: return %[[D]] : tensor<2xf64>
func.func @others(%x: tensor<2xi32>) -> tensor<2xf64> {
  %a = top.cast %x {to = bf16} : (tensor<2xi32>) -> tensor<2xbf16>
  %y = top.cast %a {to = f64} : (tensor<2xbf16>) -> tensor<2xf64>
  return %y : tensor<2xf64>
}

// -----

// Nothing to do, nothing done.
// CHECK-LABEL: @single
// CHECK-NEXT: top.relu
// CHECK-NEXT: return
func.func @single(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = top.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
