// Weights in the calibration table's weight file: integers and scales are used, the bias is added, faults are reported.
// SPDX-License-Identifier: Apache-2.0
// RUN: %python %S/Inputs/learned.py %S/Inputs/table.json %t
// RUN: tessera-opt %s --top-quantize=calibration-table=%t/good.json | FileCheck %s
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/shape.json 2>&1 | FileCheck %s --check-prefix=FIT
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/no_scale.json 2>&1 | FileCheck %s --check-prefix=FIT
// FIT: error: '{{.*}}.safetensors': the weights for tensor 'y' do not match the model
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/range.json 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/zero_scale.json 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: '{{.*}}.safetensors': the weights for tensor 'y' are out of range; allowed: integers from -127 to 127 and finite scales above 0
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/other.json 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: '{{.*}}other.safetensors' is not the file that the calibration table names: its SHA-256 differs; run_calibration writes the table and the weights together: keep both files
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/absent.json 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: error: failed to open the calibration table's weights '{{.*}}absent.safetensors': {{[Nn]}}o such file or directory
// RUN: not tessera-opt %s --top-quantize=calibration-table=%t/two_terms_bias.json 2>&1 | FileCheck %s --check-prefix=VECTOR
// VECTOR: error: '{{.*}}two_terms_bias.safetensors': the input bias for tensor 'y' is not a vector of finite f32 values, one per channel
// RUN: tessera-opt %s --top-quantize=calibration-table=%t/two_terms.json | FileCheck %s --check-prefix=TERMS
// TERMS-LABEL: func.func @main
// TERMS: %[[B:.*]] = top.constant dense<[3.000000e+00, -4.000000e+00]> : tensor<2xf32>
// TERMS: %[[R:.*]] = top.conv %{{[^,]*}}, %{{[^,]*}} {
// TERMS: top.conv %{{.*}}, %{{.*}}, %[[B]] {

// The file does not contain the second convolution, whose weights are rounded without it and without a bias.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{\[\[\[\[}}1{{\]\], \[\[}}-2{{\]\]\], \[\[\[}}3{{\]\], \[\[}}-127{{\]\]\]\]}}> : tensor<2x2x1x1xi8>
// CHECK-DAG: %[[S:.*]] = top.constant dense<{{\[\[\[\[}}5.000000e-01{{\]\]\], \[\[\[}}2.500000e-01{{\]\]\]\]}}> : tensor<2x1x1x1xf32>
// CHECK-DAG: %[[B:.*]] = top.constant dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>
// CHECK-DAG: %[[WD:.*]] = top.dequantize %[[W]], %[[S]],
// CHECK: top.conv %{{.*}}, %[[WD]], %[[B]]
// CHECK: top.conv %{{.*}}, %{{[^,]*}} {
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<1x2x4x4xf32> {top.name = "y"}, tensor<1x2x4x4xf32> {top.name = "z"}) {
  %w = top.constant dense<[[[[1.27]], [[-0.637]]], [[[25.4]], [[0.0]]]]> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %z = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["z"]} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %y, %z : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
