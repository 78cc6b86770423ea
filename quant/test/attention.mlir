// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/attention_table.json | FileCheck %s
// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/attention_table.json --convert-top-to-device | FileCheck %s --check-prefix=DEVICE
// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/attention_sensitive.json 2>&1 | FileCheck %s --check-prefix=SENSITIVE
// RUN: tessera-opt %s --top-quantize="calibration-table=%S/Inputs/attention_table.json precision=INT16" 2>&1 | FileCheck %s --check-prefix=WIDE
// SPDX-License-Identifier: Apache-2.0

// q, k and v become bytes with the zero point 0, whatever their ranges are; exponentials have 255 steps.
// CHECK-COUNT-3: top.quantize %arg{{[0-2]}}
// CHECK: top.attention
// CHECK-SAME: levels = 255 : i64
// CHECK-NOT: top.quantize
// DEVICE: device.attention
// DEVICE-SAME: levels = 255 : i64
// DEVICE-SAME: scale = 2.5{{0*}}e-01 : f64
// DEVICE-SAME: valueScale = 2.5{{0*}}e-01 : f64
// DEVICE-SAME: (tensor<2x3x4xi8>, tensor<2x5x4xi8>, tensor<2x5x6xi8>, tensor<3x5xf32>) -> tensor<2x3x6xf32>
// SENSITIVE: 'y' (top.attention) stays float: q, k and v in int8 would change the outputs by 6.4%; at most 5% is allowed
// SENSITIVE-NOT: top.quantize
// WIDE: 'y' (top.attention) stays float: attention supports 8-bit integers only, but INT16 was requested
func.func @main(%q: tensor<2x3x4xf32> {top.name = "q"}, %k: tensor<2x5x4xf32> {top.name = "k"}, %v: tensor<2x5x6xf32> {top.name = "v"}, %m: tensor<3x5xf32> {top.name = "m"}) -> (tensor<2x3x6xf32> {top.name = "y"}) {
  %y = top.attention %q, %k, %v, %m {scale = 0.5 : f64, top.outputs = ["y"]} : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>, tensor<3x5xf32>) -> tensor<2x3x6xf32>
  return %y : tensor<2x3x6xf32>
}
