// RUN: tessera-opt %s --top-recover-activations --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// x * (1 + erf(x / sqrt 2)) * 0.5, as torch writes it.
// CHECK-LABEL: @gelu_erf
// CHECK-NEXT: %[[Y:.*]] = top.gelu %arg0 {top.outputs = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @gelu_erf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %sqrt2 = top.constant dense<1.41421354> : tensor<f32> : tensor<f32>
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %0 = top.div %x, %sqrt2 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = top.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = top.add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = top.mul %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = top.mul %3, %half {top.outputs = ["y"]} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// (1 + erf(x * 0.7071)) * (x * 0.5), with the factors in the other order.
// CHECK-LABEL: @gelu_erf_turned
// CHECK-NEXT: top.gelu %arg0
// CHECK-NEXT: return
func.func @gelu_erf_turned(%x: tensor<4xf32>) -> tensor<4xf32> {
  %sqrt_half = top.constant dense<0.707106769> : tensor<f32> : tensor<f32>
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %0 = top.mul %sqrt_half, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = top.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = top.add %one, %1 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = top.mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = top.mul %2, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// The tanh form: x^3 as a power, as x * x^2, and factored as x (a + b x^2).
// CHECK-LABEL: @gelu_tanh
// CHECK-NEXT: top.gelu %arg0 {tanh = true}
// CHECK-NEXT: top.gelu %arg1 {tanh = true}
// CHECK-NEXT: return
func.func @gelu_tanh(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = top.constant dense<0.0447149985> : tensor<f32> : tensor<f32>
  %k = top.constant dense<0.797884583> : tensor<f32> : tensor<f32>
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %three = top.constant dense<3.0> : tensor<f32> : tensor<f32>
  %0 = top.pow %x, %three : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = top.mul %0, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = top.add %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = top.mul %2, %k : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = top.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = top.add %4, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = top.mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = top.mul %6, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = top.constant dense<0.0356774069> : tensor<f32> : tensor<f32>
  %8 = top.mul %z, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %9 = top.mul %b, %8 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %10 = top.add %9, %k : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %11 = top.mul %z, %10 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %12 = top.tanh %11 : (tensor<4xf32>) -> tensor<4xf32>
  %13 = top.add %one, %12 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %14 = top.mul %13, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %15 = top.mul %14, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %7, %15 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A different cubic coefficient is a different function.
// CHECK-LABEL: @no_gelu
// CHECK-NOT: top.gelu
// CHECK: top.tanh
func.func @no_gelu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = top.constant dense<0.0447> : tensor<f32> : tensor<f32>
  %k = top.constant dense<0.797884583> : tensor<f32> : tensor<f32>
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %three = top.constant dense<3.0> : tensor<f32> : tensor<f32>
  %0 = top.pow %x, %three : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = top.mul %0, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = top.add %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = top.mul %2, %k : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = top.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = top.add %4, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = top.mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = top.mul %6, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %7 : tensor<4xf32>
}

// -----

// x sigmoid(x), and x / (1 + e^-x). A product with the sigmoid of another value is a gate, not silu.
// CHECK-LABEL: @silu
// CHECK-NEXT: %[[A:.*]] = top.silu %arg0
// CHECK-NEXT: %[[B:.*]] = top.silu %arg1
// CHECK-NEXT: %[[G:.*]] = top.sigmoid %arg0
// CHECK-NEXT: %[[C:.*]] = top.mul %arg1, %[[G]]
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]]
func.func @silu(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %0 = top.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = top.mul %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = top.neg %z : (tensor<4xf32>) -> tensor<4xf32>
  %3 = top.exp %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = top.add %3, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = top.div %z, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = top.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %7 = top.mul %z, %6 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %5, %7 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @sigmoid_softplus_mish
// CHECK-NEXT: top.sigmoid %arg0
// CHECK-NEXT: top.mish %arg1
// CHECK-NEXT: return
func.func @sigmoid_softplus_mish(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %0 = top.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = top.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = top.add %one, %1 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = top.div %one, %2 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = top.exp %z : (tensor<4xf32>) -> tensor<4xf32>
  %5 = top.add %4, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = top.log %5 : (tensor<4xf32>) -> tensor<4xf32>
  %7 = top.tanh %6 : (tensor<4xf32>) -> tensor<4xf32>
  %8 = top.mul %7, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3, %8 : tensor<4xf32>, tensor<4xf32>
}

// -----

// x hard_sigmoid(x), x relu6(x + 3) / 6 in two associations, and clip(x / 6 + 1/2, 0, 1) x.
// CHECK-LABEL: @hard_swish
// CHECK-NEXT: %[[A:.*]] = top.hard_swish %arg0
// CHECK-NEXT: %[[B:.*]] = top.hard_swish %arg0
// CHECK-NEXT: %[[C:.*]] = top.hard_swish %arg0
// CHECK-NEXT: %[[D:.*]] = top.hard_swish %arg0
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @hard_swish(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %three = top.constant dense<3.0> : tensor<f32> : tensor<f32>
  %six = top.constant dense<6.0> : tensor<f32> : tensor<f32>
  %sixth = top.constant dense<0.166666672> : tensor<f32> : tensor<f32>
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %0 = top.hard_sigmoid %x {alpha = 0.166666672 : f32, beta = 0.5 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = top.mul %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = top.add %x, %three : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = top.clip %2 {lo = 0.0 : f64, hi = 6.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = top.mul %x, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = top.div %4, %six : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = top.add %three, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %7 = top.clip %6 {lo = 0.0 : f64, hi = 6.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = top.mul %7, %sixth : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %9 = top.mul %8, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %10 = top.mul %x, %sixth : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %11 = top.add %10, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %12 = top.clip %11 {lo = 0.0 : f64, hi = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %13 = top.mul %12, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %5, %9, %13 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// With constants of another slope it is a gate; relu6 alone stays a clip.
// CHECK-LABEL: @hard_sigmoid
// CHECK-NEXT: top.hard_sigmoid %arg0 {alpha = 2.500000e-01 : f32}
// CHECK-NEXT: top.clip %arg0
// CHECK-NEXT: return
func.func @hard_sigmoid(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %slope = top.constant dense<0.25> : tensor<f32> : tensor<f32>
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %0 = top.mul %x, %slope : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = top.add %0, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = top.clip %1 {lo = 0.0 : f64, hi = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = top.clip %x {lo = 0.0 : f64, hi = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}
