// Integer weights of float ops in the calibration table's weight file: integers and scales of groups are used, and
// faults are reported.
// SPDX-License-Identifier: Apache-2.0
// RUN: %python %S/Inputs/learned.py %S/Inputs/table.json %t
// RUN: tessera-opt %s --top-quantize="precision=W4 group-size=16 calibration-table=%t/alone.json" | FileCheck %s
// RUN: not tessera-opt %s --top-quantize="precision=W4 group-size=16 calibration-table=%t/alone_shape.json" 2>&1 | FileCheck %s --check-prefix=FIT
// FIT: error: '{{.*}}alone_shape.safetensors': the weights for tensor 'y' do not match the model
// RUN: not tessera-opt %s --top-quantize="precision=W4 group-size=16 calibration-table=%t/alone_groups.json" 2>&1 | FileCheck %s --check-prefix=GROUPS
// GROUPS: error: '{{.*}}.safetensors': the weights for tensor 'y' have 1 groups, expected 2; pass the same --group_size to run_calibration and model_deploy
// RUN: not tessera-opt %s --top-quantize="precision=W4 group-size=16 calibration-table=%t/alone_range.json" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not tessera-opt %s --top-quantize="precision=W4 group-size=16 calibration-table=%t/alone_zero_scale.json" 2>&1 | FileCheck %s --check-prefix=RANGE
// RANGE: error: '{{.*}}.safetensors': the weights for tensor 'y' are out of range; allowed: 4-bit integers and finite scales other than 0
// W4 may keep 8 bits with one scale per channel for some ops; W8 ignores these weights.
// RUN: tessera-opt %s --top-quantize="precision=W4 group-size=16 calibration-table=%t/alone_wide.json" | FileCheck %s --check-prefix=WIDE
// WIDE: top.constant dense<{{.*}}[127, -128]{{.*}}> : tensor<20x2xi8>
// WIDE: top.constant dense<{{.*}}5.000000e-01, 2.500000e-01{{.*}}> : tensor<1x2xf32>
// RUN: tessera-opt %s --top-quantize="precision=W8 calibration-table=%t/alone_wide.json" | FileCheck %s --check-prefix=OTHER
// RUN: not tessera-opt %s --top-quantize="precision=W4 group-size=16 calibration-table=%t/alone_wide_scales.json" 2>&1 | FileCheck %s --check-prefix=WIDE-SCALES
// WIDE-SCALES: error: '{{.*}}.safetensors': the weights for tensor 'y' have 2 groups, expected 1; pass the same --group_size to run_calibration and model_deploy
// W8 does not use weights learned for W4, nor does INT8.
// RUN: tessera-opt %s --top-quantize="precision=W8 calibration-table=%t/alone.json" | FileCheck %s --check-prefix=OTHER
// OTHER: top.constant dense<127> : tensor<20x2xi8>

// The last group of 20 rows is padded with zeros. The second matmul is the last one: it keeps 8 bits.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[Q:.*]] = top.constant dense<{{.*}}7, -8{{.*}}> : tensor<2x16x2xi8>
// CHECK-DAG: %[[S:.*]] = top.constant dense<{{\[\[\[}}5.000000e-01, -1.250000e-01{{\]\], \[\[}}2.500000e-01, 2.000000e+00{{\]\]\]}}> : tensor<2x1x2xf32>
// CHECK: %[[D:.*]] = top.dequantize %[[Q]], %[[S]], %{{.*}} -> tensor<2x16x2xf32>
// CHECK: top.slice {{.*}} -> tensor<20x2xf32>
// CHECK: top.constant dense<127> : tensor<2x2xi8>
func.func @main(%x: tensor<3x20xf32> {top.name = "x"}, %no_a: tensor<1xf32> {top.name = "a"}, %no_b: tensor<1xf32> {top.name = "b"}, %no_c: tensor<1xf32> {top.name = "c"}) -> (tensor<3x2xf32> {top.name = "z"}) {
  %w = top.constant dense<1.0> : tensor<20x2xf32> : tensor<20x2xf32>
  %v = top.constant dense<1.0> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.matmul %x, %w {top.outputs = ["y"]} : (tensor<3x20xf32>, tensor<20x2xf32>) -> tensor<3x2xf32>
  %z = top.matmul %y, %v {top.outputs = ["z"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %z : tensor<3x2xf32>
}
