// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --x86-hoist-inputs --split-input-file | FileCheck %s
// RUN: tessera-opt %s --x86-hoist-inputs --x86-pack-weights --split-input-file | FileCheck %s --check-prefix=PACKED
// RUN: tessera-opt %s --x86-hoist-inputs=vector-bytes=16 --split-input-file | FileCheck %s --check-prefix=SSE

// One matmul for all steps adds the biases of inputs and states; the weights of two directions are concatenated.
// CHECK-LABEL: func.func @both
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{\[\[}}1.000000e+00], [2.000000e+00], [3.000000e+00], [4.000000e+00{{\]\]}}> : tensor<4x1xf32>
// CHECK-DAG: %[[B:.*]] = top.constant dense<[4.000000e+00, 6.000000e+00, 1.200000e+01, 1.400000e+01]> : tensor<4xf32>
// CHECK: %[[S:.*]] = device.matmul %arg0, %[[W]] bias %[[B]] {transB = true} : (tensor<3x2x1xf32>, tensor<4x1xf32>, tensor<4xf32>) -> tensor<3x2x4xf32>
// CHECK: device.recurrent %[[S]], %{{[a-z0-9_]+}} {activations
// PACKED: device.recurrent %{{.*}} packing = #x86.packing<matrix, f32, shape = [2, 2, 2], tile = 28 x 16>
func.func @both(%x: tensor<3x2x1xf32>) -> tensor<3x2x2x2xf32> {
  %w = top.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32> : tensor<2x2x1xf32>
  %r = top.constant dense<1.0> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %b = top.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> : tensor<2x4xf32>
  %y, %h, %c = device.recurrent %x, %r w %w bias %b {kind = "rnn", direction = "bidirectional", hiddenSize = 2 : i64, activations = ["Tanh", "Tanh"]}
    : (tensor<3x2x1xf32>, tensor<2x2x2xf32>, tensor<2x2x1xf32>, tensor<2x4xf32>) -> (tensor<3x2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>)
  return %y : tensor<3x2x2x2xf32>
}

// -----

// The bias that the reset gate multiplies stays with the state.
// CHECK-LABEL: func.func @candidate
// CHECK: %[[B:.*]] = top.constant dense<[5.000000e+00, 7.000000e+00, 3.000000e+00]> : tensor<3xf32>
// CHECK: device.matmul %arg0, %{{.*}} bias %[[B]]
// CHECK: %[[H:.*]] = top.constant dense<{{\[\[}}0.000000e+00, 0.000000e+00, 6.000000e+00{{\]\]}}> : tensor<1x3xf32>
// CHECK: device.recurrent %{{.*}}, %{{.*}} bias %[[H]] {
func.func @candidate(%x: tensor<3x2x1xf32>) -> tensor<3x1x2x1xf32> {
  %w = top.constant dense<1.0> : tensor<1x3x1xf32> : tensor<1x3x1xf32>
  %r = top.constant dense<1.0> : tensor<1x3x1xf32> : tensor<1x3x1xf32>
  %b = top.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]> : tensor<1x6xf32> : tensor<1x6xf32>
  %y, %h, %c = device.recurrent %x, %r w %w bias %b {kind = "gru", direction = "forward", hiddenSize = 1 : i64, activations = ["Sigmoid", "Tanh"], linearBeforeReset = true}
    : (tensor<3x2x1xf32>, tensor<1x3x1xf32>, tensor<1x3x1xf32>, tensor<1x6xf32>) -> (tensor<3x1x2x1xf32>, tensor<1x2x1xf32>, tensor<1x2x1xf32>)
  return %y : tensor<3x1x2x1xf32>
}

// -----

// Weights known only at run time are unchanged, and so are 16-bit weights on a chip that cannot widen them in
// registers.
// CHECK-LABEL: func.func @open
// CHECK-NOT: device.matmul
// CHECK: device.recurrent %arg0, %arg1 w
// CHECK-LABEL: func.func @narrow
// CHECK: device.matmul
// SSE-LABEL: func.func @narrow
// SSE-NOT: device.matmul
// SSE: device.recurrent %arg0, %{{.*}} w
func.func @open(%x: tensor<3x2x1xf32>, %r: tensor<1x2x2xf32>) -> tensor<3x1x2x2xf32> {
  %w = top.constant dense<1.0> : tensor<1x2x1xf32> : tensor<1x2x1xf32>
  %y, %h, %c = device.recurrent %x, %r w %w {kind = "rnn", direction = "forward", hiddenSize = 2 : i64, activations = ["Tanh"]}
    : (tensor<3x2x1xf32>, tensor<1x2x2xf32>, tensor<1x2x1xf32>) -> (tensor<3x1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>)
  return %y : tensor<3x1x2x2xf32>
}

func.func @narrow(%x: tensor<3x2x1xf16>) -> tensor<3x1x2x2xf16> {
  %w = top.constant dense<1.0> : tensor<1x2x1xf16> : tensor<1x2x1xf16>
  %r = top.constant dense<1.0> : tensor<1x2x2xf16> : tensor<1x2x2xf16>
  %y, %h, %c = device.recurrent %x, %r w %w {kind = "rnn", direction = "forward", hiddenSize = 2 : i64, activations = ["Tanh"]}
    : (tensor<3x2x1xf16>, tensor<1x2x2xf16>, tensor<1x2x1xf16>) -> (tensor<3x1x2x2xf16>, tensor<1x2x2xf16>, tensor<1x2x2xf16>)
  return %y : tensor<3x1x2x2xf16>
}
